import Foundation
import NIOCore
import NIOPosix
import Testing

@testable import RedisStorage

/// Peers that are no Redis. They need no server.
@Suite(.timeLimit(.minutes(5))) struct BadPeerTests {
    /// Says the same to each connection, and again to whatever comes.
    private final class Peer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let text: String
        private let greets: Bool

        init(_ text: String, greets: Bool) {
            self.text = text
            self.greets = greets
        }

        func channelActive(context: ChannelHandlerContext) { if greets { say(context) } }
        func channelRead(context: ChannelHandlerContext, data: NIOAny) { if !greets { say(context) } }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

        private func say(_ context: ChannelHandlerContext) {
            if !text.isEmpty { context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil) }
        }
    }

    private func withPeer(
        _ text: String, greets: Bool = false, _ body: (RedisStorage.Configuration.Server) async throws -> Void
    ) async throws {
        let channel = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Peer(text, greets: greets))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        try await body(.host("127.0.0.1", port: channel.localAddress?.port ?? 0))
        try await channel.close()
    }

    @Test(
        arguments: [
            "HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "$999999999999\r\n", "*99999999999\r\n",
            "*-7\r\n", ":not a number\r\n", "$3\r\nabcdef", String(repeating: "*1\r\n", count: 50),
            "+" + String(repeating: "x", count: 1 << 20), "\u{0}\u{1}\u{2}",
        ], [true, false]) func garbageIsAMissAndIsTold(text: String, greets: Bool) async throws
    {
        try await withPeer(text, greets: greets) { server in
            let a = try Client(server)
            #expect(a.body("/1") == nil)
            await a.told.wait(for: .notRedis)
        }
    }

    /// Speaks the protocol, and gives the worst number to each command: after the hello that loads the scripts, too.
    private final class NumberPeer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let reply: String
        private var received = ByteBuffer()

        init(_ reply: String) { self.reply = reply }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var data = unwrapInboundIn(data)
            received.writeBuffer(&data)
            // A command is a list of strings, as a reply may be.
            while let command = try? RESPReader.next(&received, longestString: 1 << 20) {
                let isLoading = command.list?.first?.text == "SCRIPT"
                context.writeAndFlush(
                    wrapOutboundOut(ByteBuffer(string: isLoading ? "+digest\r\n" : reply)), promise: nil)
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    private static let numbers = [
        "-9223372036854775808", "9223372036854775807", "-1", "0", "1", "9007199254740993", "99999999999999999999", "",
    ]

    /// No number that a server gives ends the process, or keeps it busy for ever.
    @Test(arguments: numbers, ["number", "text", "list", "rows"]) func extremeNumbers(number: String, form: String)
        async throws
    {
        let text = "$\(number.utf8.count)\r\n\(number)\r\n"
        let reply =
            switch form {
            case "number": ":\(number)\r\n"
            case "text": "$\(number.utf8.count + 27)\r\nused_memory:\(number)\r\nmaxmemory:x\r\n\r\n"
            case "list": "*2\r\n\(text)\(text)"
            // As the log: a token, a number that changes, rows.
            default: "*3\r\n$1\r\nt\r\n\(text)\(text)"
            }
        let channel = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(NumberPeer(reply))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let a = try Client(.host("127.0.0.1", port: channel.localAddress?.port ?? 0), memory: 1 << 20) {
            $0.timeout = 1
        }
        for _ in 0..<3 {
            _ = a.storage.removalsByOthers()
            a.store("/1")
            _ = a.body("/2")
        }
        _ = a.cache.currentDiskUsage + (a.cache.diskCapacity == .max ? 0 : a.cache.diskCapacity)
        // One that is never done is left alone after a while, in the background: not waited for here.
        a.storage.removeEntries(matching: .everything)
        #expect(a.body("/2") == nil)
        try await channel.close()
    }

    @Test func aPeerThatNeverAnswersIsAMiss() async throws {
        try await withPeer("") { server in
            let a = try Client(server) {
                $0.timeout = 0.1
                $0.connectTimeout = 0.5
                $0.pause = 3_600
            }
            #expect(a.body("/1") == nil)
            await a.told.wait(for: .timedOut)
            a.store("/1")
            #expect(a.body("/1") == nil)
            #expect(a.told.codes == [.timedOut])
        }
    }

    @Test func aPeerThatTakesAConnectionAndNothingElseIsGivenUp() async throws {
        try await withPeer("") { server in
            let a = try Client(server) { $0.connectTimeout = 0.3 }
            #expect(a.body("/1") == nil)
            await a.told.wait(for: .unreachable)
            #expect(a.told.texts.first?.contains("0.3 seconds") == true)
        }
    }

    @Test func nobodyListens() async throws {
        let port = try RedisServer.freePort()
        let a = try Client(.host("127.0.0.1", port: port))
        #expect(a.body("/1") == nil)
        await a.told.wait(for: .unreachable)
        let b = try Client(.host("no-such-host.invalid")) { $0.connectTimeout = 5 }
        #expect(b.body("/1") == nil)
        await b.told.wait(for: .unreachable)
        let c = try Client(.socket(path: "/nowhere/redis.sock"))
        #expect(c.body("/1") == nil)
        await c.told.wait(for: .unreachable)
    }

    /// Replies are the same in whatever pieces they come, and no bytes end the process.
    @Test func repliesInPieces() throws {
        let text = "*4\r\n$5\r\nhello\r\n:42\r\n$-1\r\n*2\r\n+OK\r\n-ERR no\r\n"
        for cut in 0...text.utf8.count {
            var buffer = ByteBuffer(string: String(decoding: text.utf8.prefix(cut), as: UTF8.self))
            let first = try RESPReader.next(&buffer, longestString: 100)
            #expect((first == nil) == (cut < text.utf8.count))
            buffer.writeString(String(decoding: text.utf8.dropFirst(cut), as: UTF8.self))
            let value = try first ?? RESPReader.next(&buffer, longestString: 100)
            #expect("\(try #require(value))".contains("42"))
            #expect(value?.list?.count == 4 && value?.list?[3].list?.count == 2)
        }
        var random = SystemRandomNumberGenerator()
        let bytes = Array("*$:+-0123459\r\nab".utf8)
        for _ in 0..<20_000 {
            var buffer = ByteBuffer(
                bytes: (0..<Int.random(in: 0..<40, using: &random)).map { _ in bytes.randomElement(using: &random)! })
            while let value = try? RESPReader.next(&buffer, longestString: 100) { _ = value }
        }
    }
}
