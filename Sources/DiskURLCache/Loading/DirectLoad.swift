import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A load that an app asks the cache for, with no task behind it: collects the answer.
final class DirectLoad: LoadClient {
    private enum State {
        case collecting(
            response: URLResponse?, data: Data, continuation: CheckedContinuation<DiskURLCache.Answer, any Error>?)
        case ended
    }

    private let state = Mutex(State.collecting(response: nil, data: Data(), continuation: nil))

    /// Loads by the loader's own engine. Cancelling the Swift task cancels the load.
    static func answer(to request: URLRequest, from cache: DiskURLCache) async throws -> DiskURLCache.Answer {
        try Task.checkCancellation()
        let load = DirectLoad()
        let link = SessionLink(session: cache.directSession)
        let driver = LoadDriver(
            cache: cache, request: link.effectiveRequest(request), task: nil, link: link, client: load)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isWaiting = load.wait(continuation)
                if isWaiting { driver.start(with: nil) }
            }
        } onCancel: {
            driver.cancel()
            load.end(.failure(CancellationError()))
        }
    }

    /// False when the load was cancelled before it began.
    private func wait(_ continuation: CheckedContinuation<DiskURLCache.Answer, any Error>) -> Bool {
        let isWaiting = state.withLock { state in
            guard case .collecting = state else { return false }
            state = .collecting(response: nil, data: Data(), continuation: continuation)
            return true
        }
        if !isWaiting { continuation.resume(throwing: CancellationError()) }
        return isWaiting
    }

    private func end(_ result: Result<DiskURLCache.Answer, any Error>) {
        let continuation = state.withLock { state in
            defer { state = .ended }
            if case .collecting(_, _, let continuation) = state { return continuation } else { return nil }
        }
        continuation?.resume(with: result)
    }

    // MARK: LoadClient

    var wantsReport: Bool { true }

    func send(_ calls: [LoadCall]) { perform(calls) }

    func perform(_ calls: [LoadCall]) {
        for call in calls {
            switch call {
            case .receive(let response):
                state.withLock { state in
                    guard case .collecting(_, let data, let continuation) = state else { return }
                    state = .collecting(response: response, data: data, continuation: continuation)
                }
            case .load(let part):
                state.withLock { state in
                    guard case .collecting(let response, var data, let continuation) = state else { return }
                    // The one chunk of a whole body is taken as it is.
                    if data.isEmpty { data = part } else { data.append(part) }
                    state = .collecting(response: response, data: data, continuation: continuation)
                }
            case .finish(let report):
                let answer: DiskURLCache.Answer? = state.withLock { state in
                    guard case .collecting(let response as HTTPURLResponse, let data, _) = state, let report else {
                        return nil
                    }
                    return DiskURLCache.Answer(data: data, response: response, report: report)
                }
                end(answer.map { .success($0) } ?? .failure(URLError(.badServerResponse)))
            case .fail(let error, _):
                end(.failure(error))
            }
        }
    }

    func close() {}
}
