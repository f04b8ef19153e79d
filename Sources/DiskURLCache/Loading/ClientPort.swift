import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a load has to say to whoever asked: one head, any data, one end.
enum LoadCall {
    case receive(URLResponse)
    case load(Data)
    // Indirect: a report is large, and seldom there.
    indirect case finish(DiskURLCache.LoadReport?)
    indirect case fail(Swift.Error, DiskURLCache.LoadReport?)
}

/// Whoever asked for a load.
protocol LoadClient: AnyObject, Sendable {
    /// Whether the end is to come with a report.
    var wantsReport: Bool { get }
    /// From any thread.
    func send(_ calls: [LoadCall])
    /// From the thread that started the load, inside `start`.
    func perform(_ calls: [LoadCall])
    /// Nothing is to be said any more.
    func close()
}

/// The one way to a protocol's client: in order, on the queue where Foundation expects it, and never after the end.
///
/// Calling the client of a task that was stopped ends the process on Linux, so every call is checked against the
/// state on the very queue that stops. A suspended task's calls wait until it is resumed.
///
/// `@unchecked Sendable`: the state is confined to `queue`.
final class ClientPort: LoadClient, @unchecked Sendable {
    private enum State {
        case open
        case paused([LoadCall])
        case closed
    }

    var wantsReport: Bool { false }

    private weak var urlProtocol: URLProtocol?
    private let queue: DispatchQueue?
    private var state = State.open
    /// The client knows that the task is over. Not so after a 401: Foundation may ask for credentials then, and it is
    /// through the client that a refusal ends the task.
    private(set) var hasEnded = false
    private var isUnauthorized = false
    // For completion handlers each `didLoad` replaces the data before it: the driver then sends one.
    init(_ urlProtocol: URLProtocol, queue: DispatchQueue?) {
        self.urlProtocol = urlProtocol
        self.queue = queue
    }

    /// From any thread but `queue`.
    func send(_ calls: [LoadCall]) {
        guard !calls.isEmpty else { return }
        guard let queue else { return perform(calls) }
        queue.async { self.perform(calls) }
    }

    /// On `queue`.
    func perform(_ calls: [LoadCall]) {
        for call in calls {
            switch state {
            case .closed: return
            case .paused(let waiting): state = .paused(waiting + [call])
            case .open: deliver(call)
            }
        }
    }

    /// On `queue`: the task was suspended.
    func pause() {
        if case .open = state { state = .paused([]) }
    }

    /// On `queue`: the task goes on.
    func resume() {
        guard case .paused(let waiting) = state else { return }
        state = .open
        perform(waiting)
    }

    /// On `queue`: no call comes after this one.
    func close() {
        state = .closed
        urlProtocol = nil
    }

    private func deliver(_ call: LoadCall) {
        guard let urlProtocol, let client = urlProtocol.client else { return }
        switch call {
        case .receive(let response):
            isUnauthorized = (response as? HTTPURLResponse)?.statusCode == 401
            client.urlProtocol(urlProtocol, didReceive: response, cacheStoragePolicy: .notAllowed)
        case .load(let data):
            client.urlProtocol(urlProtocol, didLoad: data)
        case .finish:
            state = .closed
            client.urlProtocolDidFinishLoading(urlProtocol)
            hasEnded = !isUnauthorized
        case .fail(let error, _):
            state = .closed
            client.urlProtocol(urlProtocol, didFailWithError: error)
            hasEnded = true
        }
    }
}
