import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import NIOConcurrencyHelpers
import NIOCore
import NIOEmbedded
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

    /// Speaks the protocol: takes the hello that loads the scripts, and replies to each other command as a test says.
    private final class CommandPeer: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        private let reply: (String, any Channel) -> String?
        private var received = ByteBuffer()

        /// - Parameter reply: the reply to the command of that name; nil for none.
        init(_ reply: @escaping (String, any Channel) -> String?) { self.reply = reply }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var data = unwrapInboundIn(data)
            received.writeBuffer(&data)
            // A command is a list of strings, as a reply may be.
            while let command = try? RESPReader.next(&received, longestString: 1 << 20) {
                let name = command.list?.first?.text ?? ""
                if let text = reply(name, context.channel) ?? (name == "SCRIPT" ? "+digest\r\n" : nil) {
                    context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
                }
            }
        }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
    }

    private typealias Reply = @Sendable (_ command: String, _ channel: any Channel) -> String?

    private func withCommandPeer(
        _ reply: @escaping Reply,
        _ body: (RedisStorage.Configuration.Server) async throws -> Void
    ) async throws {
        let channel = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(CommandPeer(reply))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        try await body(.host("127.0.0.1", port: channel.localAddress?.port ?? 0))
        try await channel.close()
    }

    /// A server at its limit of clients is not asked for a connection again and again.
    @Test func aFurtherConnectionThatFailsIsNotTriedAtOnceAgain() async throws {
        let channels = NIOLockedValueBox<[ObjectIdentifier]>([])
        let reply: Reply = { command, channel in
            let number = channels.withLockedValue { channels in
                let known = ObjectIdentifier(channel)
                if !channels.contains(known) { channels.append(known) }
                return channels.firstIndex(of: known)
            }
            if number != 0 { channel.close(promise: nil) }
            return ["EVALSHA": "*0\r\n"][command]
        }
        try await withCommandPeer(reply) { server in
            let a = try Client(server) { $0.pause = 600 }
            _ = a.body("/0")
            for _ in 0..<20 {
                await withTaskGroup { group in
                    for number in 0..<20 { group.addTask { _ = a.body("/\(number)") } }
                }
            }
            #expect(channels.withLockedValue { $0.count } <= 2)
        }
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
        let worst: Reply = { command, _ in command == "SCRIPT" ? nil : reply }
        try await withCommandPeer(worst) { server in
            let a = try Client(server, memory: 1 << 20) { $0.timeout = 1 }
            for _ in 0..<3 {
                _ = a.storage.removalsByOthers()
                a.store("/1")
                _ = a.body("/2")
            }
            _ = a.cache.currentDiskUsage + (a.cache.diskCapacity == .max ? 0 : a.cache.diskCapacity)
            // One that is never done is left alone after a while, in the background: not waited for here.
            a.storage.removeEntries(matching: .everything)
            #expect(a.body("/2") == nil)
        }
    }

    // MARK: What is told

    /// A server that does not know a command quotes its arguments.
    @Test func aPasswordIsNotToldWithTheErrorOfItsCommand() async throws {
        let error = "-ERR unknown command 'AUTH', with args beginning with: 'hunter2' \r\n"
        let reply: Reply = { command, _ in command == "AUTH" ? error : nil }
        try await withCommandPeer(reply) { server in
            let a = try Client(server) { $0.password = "hunter2" }
            #expect(a.body("/1") == nil)
            await a.told.wait(for: .refused)
            let text = try #require(a.told.texts.first)
            #expect(text.contains("AUTH") && text.contains("ERR") && !text.contains("hunter2"), "\(text)")
        }
    }

    @Test func anErrorIsToldInOneLine() async throws {
        let error = "-ERR one\nWARNING two\u{1B}[2J\r\n"
        let reply: Reply = { command, _ in command == "EVALSHA" ? error : nil }
        try await withCommandPeer(reply) { server in
            let a = try Client(server)
            #expect(a.body("/1") == nil)
            await a.told.wait(for: .refused)
            let text = try #require(a.told.texts.first)
            #expect(text.contains("ERR one WARNING two [2J"), "\(text)")
        }
    }

    /// Each removal during an outage is the same failure.
    @Test func delayedRemovalsAreToldOnce() async throws {
        let a = try Client(.host("127.0.0.1", port: try RedisServer.freePort())) { $0.maximumEntrySize = 1 }
        for _ in 0..<5 { a.storage.removeEntries(matching: .everything) }
        let source = Capture()
        source.store("/1", tags: [])
        // Failures are told in order.
        for (name, entry) in source.entries { a.storage.store(entry, named: name) }
        await a.told.wait(for: .tooLarge)
        #expect(a.told.codes.count { $0 == .removalDelayed } == 1)
    }

    // MARK: Erasing

    @Test func aFlushDoesNotWaitForALongSearch() async throws {
        let scanning = NIOLockedValueBox<(any Channel)?>(nil)
        let reply: Reply = { command, channel in
            if ["EVALSHA", "HDEL"].contains(command) { return ":0\r\n" }
            if command == "SCAN" { scanning.withLockedValue { $0 = channel } }
            return nil
        }
        try await withCommandPeer(reply) { server in
            let a = try Client(server) { $0.maximumEntrySize = 1 }
            a.storage.removeEntries(matching: .everything)
            a.storage.flush()
            await eventually("the search") { scanning.withLockedValue { $0 != nil } }
            // The search is not over yet, and not given up either.
            let end = ByteBuffer(string: "*2\r\n$1\r\n0\r\n*0\r\n")
            try await scanning.withLockedValue { $0 }?.writeAndFlush(end)
            a.storage.flush()
            let source = Capture()
            source.store("/1", tags: [])
            for (name, entry) in source.entries { a.storage.store(entry, named: name) }
            await a.told.wait(for: .tooLarge)
            #expect(a.told.codes == [.tooLarge])
        }
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

    @Test(arguments: ["everything", "tag"]) func aSearchWithoutEndIsTold(removed: String) async throws {
        let reply: Reply = { command, _ in
            // More entries of the tag, and more keys, each time.
            ["EVALSHA": ":1\r\n", "SCAN": "*2\r\n$1\r\n1\r\n*0\r\n"][command]
        }
        try await withCommandPeer(reply) { server in
            let a = try Client(server) { $0.mostSteps = 10 }
            if removed == "tag" {
                a.cache.removeCachedResponses(tag: "x")
            } else {
                a.cache.removeAllCachedResponses()
            }
            await a.told.wait(for: .tooManyKeys)
            #expect(a.told.codes == [.tooManyKeys])
        }
    }

    /// A connection whose reads never end with a reply keeps the rest of the last read, not all that it ever received.
    @Test func whatWasReadIsNotKept() throws {
        let channel = EmbeddedChannel()
        let handler = RedisHandler(address: "here", longestString: 64 << 10)
        try channel.pipeline.syncOperations.addHandler(handler)
        let largest = NIOLockedValueBox(0)
        let text = "$1000\r\n\(String(repeating: "x", count: 1_000))\r\n"
        let (first, second) = (text.prefix(500), text.dropFirst(500))
        try channel.writeInbound(ByteBuffer(substring: first))
        for _ in 0..<1_000 {
            handler.send(
                RedisCall([RESPCommand("GET", "x")]) { result in
                    guard case .success(let replies) = result, case .bytes(let bytes)? = replies.first else { return }
                    largest.withLockedValue { $0 = max($0, bytes.storageCapacity) }
                })
            try channel.writeInbound(ByteBuffer(string: "\(second)\(first)"))
        }
        #expect((1_000...8_192).contains(largest.withLockedValue { $0 }))
        #expect(handler.load == 0)
        _ = try channel.finish(acceptAlreadyClosed: true)
    }

    /// The end of a connection with TLS takes seconds, since it waits for the word of a server that may be silent. No
    /// call is sent on it meanwhile.
    @Test func aConnectionThatIsClosedIsOutOfUseAtOnce() throws {
        final class WaitsForTheServer: ChannelOutboundHandler {
            typealias OutboundIn = ByteBuffer
            func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {}
        }
        let channel = EmbeddedChannel()
        let handler = RedisHandler(address: "here", longestString: 64 << 10)
        try channel.pipeline.syncOperations.addHandlers(WaitsForTheServer(), handler)
        let failures = NIOLockedValueBox(0)
        let isClosed = NIOLockedValueBox(false)
        handler.didClose = { isClosed.withLockedValue { $0 = true } }
        func send() {
            handler.send(
                RedisCall([RESPCommand("GET", "x")]) {
                    if case .failure = $0 { failures.withLockedValue { $0 += 1 } }
                })
        }
        send()
        handler.close(RedisFailure(.timedOut, "late"))
        #expect(isClosed.withLockedValue { $0 } && failures.withLockedValue { $0 } == 1)
        send()
        #expect(failures.withLockedValue { $0 } == 2 && handler.load == 0)
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
