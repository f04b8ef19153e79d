import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache.ResponseStream {
    public func pieces() async throws -> [String] {
        var pieces: [String] = []
        for try await piece in self { pieces.append(String(decoding: piece, as: UTF8.self)) }
        return pieces
    }
}

/// What a load through a transport came to.
public struct TransportAnswer: Sendable {
    public var data: Data
    public var response: HTTPURLResponse
    public var report: DiskURLCache.Report
}

extension DiskURLCache {
    /// A load through a transport, with its whole body.
    public func answer(to request: URLRequest, through transport: some CallbackTransport) async throws
        -> TransportAnswer
    {
        let stream = try await load(request, through: transport)
        var data = Data()
        for try await piece in stream { data += piece }
        return TransportAnswer(data: data, response: stream.response, report: stream.report)
    }
}

/// Something that happens once.
public final class Flag: Sendable {
    private let state = Guarded(false)

    public init() {}

    public var value: Bool { state.withLock { $0 } }
    public func set() { state.withLock { $0 = true } }
    public func isSet() async { await eventually("a flag") { value } }
}

/// A transport that is a closure.
public final class ClosureTransport: DiskURLCache.Transport {
    public struct Exchange: Sendable {
        public let url: URL
        public let receiver: DiskURLCache.Receiver
        public let transport: ClosureTransport

        public func head(_ status: Int, _ fields: [String: String] = [:]) {
            let head = Responses.http(url, status: status, fields: fields)
            transport.state.withLock { $0.heads.append(head) }
            receiver.receive(head)
        }
        public func piece(_ text: String) async { await piece(Data(text.utf8)) }
        public func piece(_ data: Data) async { await receiver.receive(data) }
        public func noteCancellation() { transport.state.withLock { $0.cancelled += 1 } }
        public func untilCancelled() async {
            while !Task.isCancelled { await Task.yield() }
            noteCancellation()
        }
    }

    private let state = Guarded((requests: [URLRequest](), heads: [HTTPURLResponse](), cancelled: 0))
    private let answer: @Sendable (URLRequest, Exchange) async throws -> Void

    public init(_ answer: @escaping @Sendable (URLRequest, Exchange) async throws -> Void) {
        self.answer = answer
    }

    public var requests: [URLRequest] { state.withLock { $0.requests } }
    public var heads: [HTTPURLResponse] { state.withLock { $0.heads } }
    public var cancelled: Int { state.withLock { $0.cancelled } }

    public func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
        let request = request.urlRequest
        guard let url = request.url else { throw URLError(.badURL) }
        state.withLock { $0.requests.append(request) }
        try await answer(request, Exchange(url: url, receiver: receiver, transport: self))
    }
}

/// Hands out the receivers, for a test to call them as it likes.
public final class ManualTransport: DiskURLCache.CallbackTransport {
    private let state = Guarded((receivers: [DiskURLCache.Receiver](), cancelled: 0))
    private let answer: @Sendable (DiskURLCache.Receiver) -> Void

    /// - Parameter answer: called inside `start`.
    public init(_ answer: @escaping @Sendable (DiskURLCache.Receiver) -> Void = { _ in }) { self.answer = answer }

    public var count: Int { state.withLock { $0.receivers.count } }
    public var cancelled: Int { state.withLock { $0.cancelled } }

    public func start(
        _ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver
    ) -> @Sendable () -> Void {
        state.withLock { $0.receivers.append(receiver) }
        answer(receiver)
        return { self.state.withLock { $0.cancelled += 1 } }
    }

    /// The receiver of the first request.
    public func receiver() async throws -> DiskURLCache.Receiver {
        await eventually("a request") { count > 0 }
        return try #require(state.withLock { $0.receivers.first })
    }
}
