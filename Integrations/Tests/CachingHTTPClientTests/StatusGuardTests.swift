import AsyncHTTPClient
import CachingHTTPClient
import DiskURLCache
import LoopbackOrigin
import NIOCore
import NIOHPACK
import NIOHTTP1
import NIOHTTP2
import NIOPosix
import NIOSSL
import Testing

/// Answers at which AsyncHTTPClient 1.37 ends the process.
@Suite(.timeLimit(.minutes(5))) struct StatusGuardTests {
    private func error(of url: String, _ configuration: HTTPClient.Configuration = .init()) async -> (any Error)? {
        let client = CachingHTTPClient(
            cache: DiskURLCache(memoryCapacity: 0, diskCapacity: 0), configuration: configuration)
        let error = await #expect(throws: (any Error).self) {
            try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(120))
        }
        try? await client.shutdown()
        return error
    }

    /// A session over a client: see `SessionServerTests`.
    @Test(arguments: ["000", "099"]) func aStatusBelow100IsAnError(status: String) async throws {
        let origin = try await RawOrigin("HTTP/1.1 \(status) What\r\nContent-Length: 2\r\n\r\nab")
        #expect(await error(of: origin.url) is HTTPParserError)
    }

    @Test(
        .enabled(if: Certificates.canBeMade, "openssl is not installed"),
        arguments: ["000", "-1", "99999999999999999999"])
    func theSameInHTTP2(status: String) async throws {
        let files = try Certificates()
        let certificate = try #require(NIOSSLCertificate.fromPEMFile(files.path("server.pem")).first)
        var tls = TLSConfiguration.makeServerConfiguration(
            certificateChain: [.certificate(certificate)],
            privateKey: .privateKey(try NIOSSLPrivateKey(file: files.path("server.key"), format: .pem)))
        tls.applicationProtocols = ["h2"]
        let context = try NIOSSLContext(configuration: tls)
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
                    _ = try channel.pipeline.syncOperations.configureHTTP2Pipeline(
                        mode: .server, connectionConfiguration: .init(), streamConfiguration: .init()
                    ) { stream in
                        stream.eventLoop.makeCompletedFuture {
                            try stream.pipeline.syncOperations.addHandler(Answer(status: status))
                        }
                    }
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        var configuration = HTTPClient.Configuration()
        configuration.tlsConfiguration = .makeClientConfiguration()
        configuration.tlsConfiguration?.trustRoots = .file(files.path("ca.pem"))
        #expect(
            await error(of: "https://localhost:\(server.localAddress?.port ?? 0)/", configuration) is HTTPParserError)
        try await server.close()
    }

    private final class Answer: ChannelInboundHandler, Sendable {
        typealias InboundIn = HTTP2Frame.FramePayload
        typealias OutboundOut = HTTP2Frame.FramePayload
        let status: String
        init(status: String) { self.status = status }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .headers = unwrapInboundIn(data) else { return }
            context.write(wrapOutboundOut(.headers(.init(headers: [":status": status]))), promise: nil)
            let body = HTTP2Frame.FramePayload.Data(data: .byteBuffer(ByteBuffer(string: "ab")), endStream: true)
            context.writeAndFlush(wrapOutboundOut(.data(body)), promise: nil)
        }
    }
}
