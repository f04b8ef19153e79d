import NIOConcurrencyHelpers
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// An origin on a loopback port. A closure answers each request, at the pace at which the client reads.
public final class Origin: Sendable {
    public struct Request: Sendable {
        public let head: HTTPRequestHead
        public let body: ByteBuffer
        public var path: String { head.uri }
        /// The client's certificate.
        public let certificate: NIOSSLCertificate?
    }

    /// Sends the answer to one request.
    public struct Answer: Sendable {
        fileprivate let channel: any Channel

        public func head(_ status: HTTPResponseStatus, _ headers: HTTPHeaders = [:]) async throws {
            try await write(.head(HTTPResponseHead(version: .http1_1, status: status, headers: headers)))
        }
        /// Returns when the socket has accepted the piece; waits while the client does not read.
        public func piece(_ buffer: ByteBuffer) async throws { try await write(.body(.byteBuffer(buffer))) }

        fileprivate func write(_ part: HTTPServerResponsePart) async throws {
            try await channel.writeAndFlush(part).get()
        }

        /// Sends a whole answer, except its end, which is sent when the closure returns.
        public func whole(_ status: HTTPResponseStatus, _ headers: HTTPHeaders = [:], _ body: String = "") async throws
        {
            var headers = headers
            if status != .notModified { headers.add(name: "Content-Length", value: "\(body.utf8.count)") }
            try await head(status, headers)
            if !body.isEmpty { try await piece(ByteBuffer(string: body)) }
        }
    }

    public let port: Int
    private let isEncrypted: Bool
    private let channel: any Channel
    private let seen: NIOLockedValueBox<[Request]>

    public var requests: [Request] { seen.withLockedValue { $0 } }

    /// - Parameter tls: for an origin of HTTPS.
    public init(
        tls: TLSConfiguration? = nil, _ answer: @escaping @Sendable (Request, Answer) async throws -> Void
    ) async throws {
        let context = try tls.map { try NIOSSLContext(configuration: $0) }
        isEncrypted = tls != nil
        let seen = NIOLockedValueBox<[Request]>([])
        self.seen = seen
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let context {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
                    }
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    let connection = try NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>(
                        wrappingChannelSynchronously: channel)
                    Task { try? await Self.serve(connection, seen, answer) }
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
    }

    deinit {
        channel.close(promise: nil)
    }

    public func url(_ path: String) -> String {
        isEncrypted ? "https://localhost:\(port)\(path)" : "http://127.0.0.1:\(port)\(path)"
    }

    private static func serve(
        _ connection: NIOAsyncChannel<HTTPServerRequestPart, HTTPServerResponsePart>,
        _ seen: NIOLockedValueBox<[Request]>, _ answer: @Sendable (Request, Answer) async throws -> Void
    ) async throws {
        let reply = Answer(channel: connection.channel)
        try await connection.executeThenClose { inbound, _ in
            var (head, body): (HTTPRequestHead?, ByteBuffer) = (nil, ByteBuffer())
            for try await part in inbound {
                switch part {
                case .head(let received): (head, body) = (received, ByteBuffer())
                case .body(var piece): body.writeBuffer(&piece)
                case .end:
                    guard let head else { return }
                    let certificate = try? await connection.channel.nioSSL_peerCertificate().get()
                    let request = Request(head: head, body: body, certificate: certificate)
                    seen.withLockedValue { $0.append(request) }
                    try await answer(request, reply)
                    try await reply.write(.end(nil))
                }
            }
        }
    }
}

/// Answers every request with the same bytes, and closes the connection.
public final class RawOrigin: Sendable {
    private final class Reply: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        let text: String
        init(_ text: String) { self.text = text }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let channel = context.channel
            channel.writeAndFlush(ByteBuffer(string: text)).whenComplete { _ in channel.close(promise: nil) }
        }
    }

    public let port: Int
    private let channel: any Channel

    public init(_ text: String) async throws {
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Reply(text)) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        port = channel.localAddress?.port ?? 0
    }

    deinit {
        channel.close(promise: nil)
    }

    public var url: String { "http://127.0.0.1:\(port)/" }
}
