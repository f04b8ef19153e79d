import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A load that an app asks the cache for, with no task behind it: collects the answer.
final class DirectLoad: LoadClient {
    private enum State {
        case running
        case waiting(CheckedContinuation<CacheAnswer, any Error>)
        case ended(Result<CacheAnswer, any Error>)
    }

    private let state = Mutex(State.running)
    private let arrived = Mutex((response: URLResponse?.none, data: Data()))

    /// Loads by the loader's own engine. Cancelling the Swift task cancels the load.
    static func answer(
        to request: URLRequest, from cache: any LoadHost, over transport: any Transport
    ) async throws -> CacheAnswer {
        try Task.checkCancellation()
        let load = DirectLoad()
        // A task has its session's cookies since it was made; here is no task.
        let hasOwnCookies = !request.httpShouldHandleCookies || request.value(forHTTPHeaderField: "Cookie") != nil
        let request = hasOwnCookies ? request : transport.prepare(request)
        let driver = LoadDriver(cache: cache, request: request, transport: transport, client: load)
        driver.start()
        // What memory holds is there by now.
        if let result = load.result { return try result.get() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { load.wait($0) }
        } onCancel: {
            driver.cancel()
            load.end(.failure(CancellationError()))
        }
    }

    private var result: Result<CacheAnswer, any Error>? {
        state.withLock { if case .ended(let result) = $0 { result } else { nil } }
    }

    private func wait(_ continuation: CheckedContinuation<CacheAnswer, any Error>) {
        let result: Result<CacheAnswer, any Error>? = state.withLock { state in
            if case .ended(let result) = state { return result }
            state = .waiting(continuation)
            return nil
        }
        if let result { continuation.resume(with: result) }
    }

    /// What comes after the first end is not heard.
    private func end(_ result: Result<CacheAnswer, any Error>) {
        let continuation: CheckedContinuation<CacheAnswer, any Error>? = state.withLock { state in
            if case .ended = state { return nil }
            defer { state = .ended(result) }
            if case .waiting(let continuation) = state { return continuation } else { return nil }
        }
        continuation?.resume(with: result)
    }

    // MARK: LoadClient

    var wantsSummary: Bool { true }

    func send(_ calls: [LoadCall]) { perform(calls) }

    func perform(_ calls: [LoadCall]) {
        for call in calls {
            switch call {
            case .receive(let response): arrived.withLock { $0.response = response }
            case .load(let part):
                // The one piece of a whole body is taken as it is.
                arrived.withLock { if $0.data.isEmpty { $0.data = part } else { $0.data.append(part) } }
            case .read: break  // Only for those that take pieces.
            case .finish(let summary):
                let (response, data) = arrived.withLock { $0 }
                if let response = response as? HTTPURLResponse, let summary {
                    end(.success(CacheAnswer(data: data, response: response, summary: summary)))
                } else {
                    end(.failure(URLError(.badServerResponse)))
                }
            case .fail(let error, _):
                end(.failure(error))
            }
        }
    }

    func close() {}
}
