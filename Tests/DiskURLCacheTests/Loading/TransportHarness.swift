import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A network on which the test itself says what comes.
final class Exchanges: Sendable {
    let all = Mutex<[MemoryTransport.Exchange]>([])

    func network() -> MemoryTransport {
        MemoryTransport { [all] _, exchange in all.withLock { $0.append(exchange) } }
    }

    func next(_ number: Int) async -> MemoryTransport.Exchange {
        await eventually("request \(number)") { all.withLock({ $0.count }) >= number }
        return all.withLock { $0[number - 1] }
    }
}

/// Takes pieces, and writes down what it hears.
final class PieceClient: LoadClient {
    struct Record {
        var heads: [HTTPURLResponse] = []
        var data = Data()
        var report: DiskURLCache.Report?
        var error: (any Error)?
        var hasEnded = false
        var isClosed = false
        /// Of a body that was left in its file.
        var largestPiece = 0
        var isUnreadable = false
        /// Calls of `perform` inside the start of the load, and after it.
        var directCalls = (inside: 0, after: 0)
        var text: String { String(decoding: data, as: UTF8.self) }
    }

    private struct State {
        var record = Record()
        /// What it has not taken yet.
        var calls = CallQueue()
        var takesItsTime: Bool
        /// A thread takes the calls.
        var isTaking = false
        var isStarting = false
    }

    private let state: Mutex<State>

    /// What it makes of a response about to be stored.
    private let confirms: (@Sendable (CachedURLResponse) -> CachedURLResponse?)?

    let isPaused: Bool

    init(
        takesItsTime: Bool = false, isPaused: Bool = false,
        confirms: (@Sendable (CachedURLResponse) -> CachedURLResponse?)? = nil
    ) {
        state = Mutex(State(takesItsTime: takesItsTime))
        self.isPaused = isPaused
        self.confirms = confirms
    }

    var confirmsStorage: Bool { confirms != nil }
    var acceptsPieces: Bool { true }

    /// From now on it takes what comes at once.
    func catchUp() {
        state.withLock { $0.takesItsTime = false }
        takeAll()
    }

    /// One thread at a time takes the calls, as on the queue of a session's client.
    private func takeAll() {
        while true {
            let call = state.withLock { state -> LoadCall? in
                guard !state.takesItsTime, !state.isTaking, let call = state.calls.next() else { return nil }
                state.isTaking = true
                return call
            }
            guard let call else { return }
            take(call)
            state.withLock { $0.isTaking = false }
        }
    }

    func bodyArrived() { takeAll() }

    @discardableResult
    func heard(_ isMet: (Record) -> Bool) async -> Record {
        var record = Record()
        await eventually("what the client is to hear") {
            record = state.withLock { $0.record }
            return isMet(record)
        }
        return record
    }

    /// What it has heard by now.
    var record: Record { state.withLock { $0.record } }

    /// Starts a load.
    func starting(_ start: () -> Void) {
        state.withLock { $0.isStarting = true }
        start()
        state.withLock { $0.isStarting = false }
    }

    func send(_ calls: [LoadCall]) { hear(calls) }

    func perform(_ calls: [LoadCall]) {
        state.withLock { state in
            if state.isStarting { state.record.directCalls.inside += 1 } else { state.record.directCalls.after += 1 }
        }
        hear(calls)
    }

    private func hear(_ calls: [LoadCall]) {
        state.withLock { state in
            for call in calls { state.calls.append(call) }
        }
        takeAll()
    }

    private func take(_ call: LoadCall) {
        state.withLock { state in
            switch call {
            case .receive(let head):
                if let http = head.response as? HTTPURLResponse { state.record.heads.append(http) }
            case .load(let data): state.record.data += data
            case .read(let body):
                let piece = body.contents
                state.record.data += piece ?? Data()
                state.record.largestPiece = max(state.record.largestPiece, body.count)
                state.record.isUnreadable = piece == nil
            case .stream, .confirmStorage: break
            case .finish(let report):
                state.record.report = report.publicReport(cacheName: nil)
                state.record.hasEnded = true
            case .fail(let error, let report):
                state.record.error = error
                state.record.report = report?.publicReport(cacheName: nil)
                state.record.hasEnded = true
            }
        }
        if case .confirmStorage(let response, let completion) = call {
            // The answer may bring further calls.
            state.withLock { $0.isTaking = false }
            completion(confirms.map { $0(response) } ?? response)
        }
    }

    func close() {
        state.withLock { state in
            state.record.isClosed = true
            state.calls.close()
        }
    }
}

/// A network that answers from memory.
final class MemoryTransport: LoadTransport {
    /// A request that is under way: the test says what comes back.
    struct Exchange: Sendable {
        let url: URL
        let token: FetchToken
        let receiver: any FetchReceiver

        func head(_ status: Int, _ fields: HeaderFields = [:]) {
            receiver.fetchReceived(URLResponse.http(url: url, status: status, fields: fields), of: token)
        }
        func piece(_ text: String) { piece(Data(text.utf8)) }
        func piece(_ data: Data) { receiver.fetchReceived(data, of: token) }
        func end(_ error: (any Error)? = nil) { receiver.fetchEnded(error, of: token) }
    }

    private struct State {
        var requests: [URLRequest] = []
        var cancelled = 0
        var pauses: [Bool] = []
    }

    private let state = Mutex(State())
    private let answer: @Sendable (URLRequest, Exchange) -> Void
    private let timeout: TimeInterval?

    /// - Parameter timeout: seconds, for each request; nil where each has its own.
    init(timeout: TimeInterval? = nil, _ answer: @escaping @Sendable (URLRequest, Exchange) -> Void) {
        self.timeout = timeout
        self.answer = answer
    }

    func timeout(of request: DiskURLCache.Request) -> TimeInterval { timeout ?? request.timeoutInterval }

    var requests: [URLRequest] { state.withLock { $0.requests } }
    var cancelled: Int { state.withLock { $0.cancelled } }
    /// True for a pause, false for a resumption, in order.
    var pauses: [Bool] { state.withLock { $0.pauses } }

    func send(_ request: DiskURLCache.Request, inPieces: Bool, token: FetchToken, receiver: any FetchReceiver) {
        let request = request.urlRequest
        let isWanted = token.didStart(
            cancel: { [state] in state.withLock { $0.cancelled += 1 } },
            setPaused: { [state] isPaused in state.withLock { $0.pauses.append(isPaused) } })
        guard let url = request.url, isWanted else { return }
        state.withLock { $0.requests.append(request) }
        let exchange = Exchange(url: url, token: token, receiver: receiver)
        DispatchQueue.global().async { [answer] in answer(request, exchange) }
    }
}

extension URLRequest {
    var impatient: URLRequest {
        var request = self
        request.timeoutInterval = 0.05
        return request
    }
}
