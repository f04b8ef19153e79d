import Foundation

/// A real HTTP/1.1 origin on the loopback interface, for tests that go through sockets.
///
///     let server = try OriginServer { request in .ok("hello", ["Cache-Control": "max-age=60"]) }
///     let (data, _) = try await session.data(from: server.url("/path"))
///     #expect(server.requests.count == 1)
///
/// One thread accepts connections, and each connection has a thread that serves it. `stop()` ends the connections,
/// `deinit` also ends the accepting thread.
public final class OriginServer: Sendable {
    public typealias Handler = @Sendable (OriginRequest) -> OriginResponse

    public let port: UInt16
    private let state: State

    public init(handler: @escaping Handler) throws {
        let listener = try LoopbackListener()
        port = listener.port
        let state = State(handler: handler, listener: listener)
        self.state = state
        Thread.detachNewThread { Self.accept(state) }
    }

    deinit {
        stop()
        state.listener.wake()
    }

    /// `target` is a path with or without a query, percent-encoded.
    public func url(_ target: String = "/") -> URL {
        URL(string: "http://127.0.0.1:\(port)\(target)") ?? URL(fileURLWithPath: target)
    }

    /// The requests so far, in the order in which the handler was called.
    public var requests: [OriginRequest] { state.shared.withLock { $0.requests } }

    /// The number of connections accepted so far, which shows whether connections are reused.
    public var connectionCount: Int { state.shared.withLock { $0.accepted } }

    /// Threads that serve a connection now.
    public var openConnectionCount: Int { state.shared.withLock { $0.open.count } }

    /// Closes every connection, and new ones at once, so that clients get an error. The port stays bound as long as the
    /// server exists, since the server of a different test could get it otherwise. (For refused connections there is
    /// `RefusingPort`.)
    public func stop() {
        state.shared.withLock { shared in
            shared.isStopped = true
            for socket in shared.open.values { socket.shutDown() }
        }
    }

    // MARK: - Threads

    /// What the threads share with the server. They do not keep the server itself alive.
    private final class State: Sendable {
        struct Shared {
            var requests: [OriginRequest] = []
            var accepted = 0
            /// The open sockets by connection number. A socket is removed before its descriptor is closed, so that
            /// `stop()` never shuts down a descriptor that has been reused.
            var open: [Int: StreamSocket] = [:]
            var isStopped = false
        }

        let handler: Handler
        let listener: LoopbackListener
        let shared = Guarded(Shared())

        init(handler: @escaping Handler, listener: LoopbackListener) {
            self.handler = handler
            self.listener = listener
        }
    }

    private static func accept(_ state: State) {
        while let socket = state.listener.accept() {
            let number = state.shared.withLock { shared -> Int? in
                guard !shared.isStopped else { return nil }
                shared.accepted += 1
                shared.open[shared.accepted] = socket
                return shared.accepted
            }
            guard let number else {
                socket.close()
                continue
            }
            Thread.detachNewThread { serve(socket, number, state) }
        }
        state.listener.close()
    }

    private static func serve(_ socket: StreamSocket, _ connection: Int, _ state: State) {
        var reader = OriginRequestReader(socket: socket)
        while var request = reader.next() {
            request.connection = connection
            state.shared.withLock { shared in
                request.number = shared.requests.count + 1
                shared.requests.append(request)
            }
            let response = state.handler(request)
            guard OriginResponseWriter(socket: socket).write(response, to: request) else { break }
        }
        _ = state.shared.withLock { $0.open.removeValue(forKey: connection) }
        socket.close()
    }
}
