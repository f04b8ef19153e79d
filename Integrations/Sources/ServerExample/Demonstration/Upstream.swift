import Hummingbird
import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOPosix

/// The upstream of the servers: takes 20 ms for an article of 4 KB that is good for ten minutes, and counts.
struct Upstream: Sendable {
    private static let delay = Duration.milliseconds(20)

    let url: String
    private let counts: NIOLockedValueBox<[String: Int]>
    private let task: Task<Void, any Error>
    /// The article "slow" waits for it.
    let release: Gate

    var requests: Int { counts.withLockedValue { $0["all"] ?? 0 } }
    func requests(for id: String) -> Int { counts.withLockedValue { $0[id] ?? 0 } }

    /// - Parameter isUneven: a tenth of the articles takes ten times as long, and each hundredth request fails.
    static func start(isUneven: Bool = false) async throws -> Upstream {
        let counts = NIOLockedValueBox<[String: Int]>([:])
        let release = Gate()
        let body = ByteBuffer(
            string: #"{"title":"An article","text":""# + String(repeating: "text ", count: 800) + #""}"#)
        let router = Router()
        router.get("articles/:id") { _, context in
            let id = try context.parameters.require("id")
            let count = counts.withLockedValue { counts in
                counts[id, default: 0] += 1
                counts["all", default: 0] += 1
                return counts["all"] ?? 0
            }
            if id == "slow" {
                await release.wait()
            } else {
                try await Task.sleep(for: isUneven && id.hasSuffix("7") ? delay * 10 : delay)
            }
            if isUneven, count.isMultiple(of: 100) { throw HTTPError(.internalServerError) }
            return Response(
                status: .ok, headers: [.contentType: "application/json", .cacheControl: "max-age=600", .eTag: "\"1\""],
                body: .init(byteBuffer: body))
        }
        router.get("requests") { _, _ in "\(counts.withLockedValue { $0["all"] ?? 0 })" }
        var logger = Logger(label: "upstream")
        logger.logLevel = .critical
        let (ports, port) = AsyncStream.makeStream(of: Int.self)
        let application = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { port.yield($0.localAddress?.port ?? 0) }, logger: logger)
        let task = Task { try await application.run() }
        guard let number = await ports.first(where: { _ in true }) else { throw Failure("the upstream did not start") }
        return Upstream(url: "http://127.0.0.1:\(number)", counts: counts, task: task, release: release)
    }

    private init(
        url: String, counts: NIOLockedValueBox<[String: Int]>, task: Task<Void, any Error>, release: Gate
    ) {
        self.url = url
        self.counts = counts
        self.task = task
        self.release = release
    }

    func end() async {
        task.cancel()
        _ = try? await task.value
    }
}

/// Opens once, and then stays open. One at a time may wait.
final class Gate: Sendable {
    private let opened: (stream: AsyncStream<Void>, continuation: AsyncStream<Void>.Continuation) =
        AsyncStream.makeStream()

    func open() { opened.continuation.finish() }
    func wait() async { for await _ in opened.stream {} }
}

/// An upstream that breaks the rules, each article in another way.
final class BadUpstream: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Article: String, CaseIterable {
        case garbage
        case silent
        case endless
        case flood
        case short
        case failing
        case good

        /// The status that the server shall answer.
        var expected: Int {
            switch self {
            case .garbage, .flood, .short, .failing: 502
            case .silent, .endless: 504
            case .good: 200
            }
        }

        var words: String {
            switch self {
            case .garbage: "is no HTTP"
            case .silent: "never comes"
            case .endless: "has a body that never ends"
            case .flood: "is longer than the server takes"
            case .short: "is cut short"
            case .failing: "is a 500"
            case .good: "is good, after all these"
            }
        }

        fileprivate var answer: (text: String, isEnd: Bool) {
            let head = "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n"
            return switch self {
            case .garbage: ("this is no HTTP\r\n\r\n", true)
            case .silent: ("", false)
            case .endless: (head + "Transfer-Encoding: chunked\r\n\r\n4\r\ntext\r\n", false)
            case .flood:
                (head + "Content-Length: 2000000000\r\n\r\n" + String(repeating: "flood ", count: 1 << 19), false)
            case .short: (head + "Content-Length: 100\r\n\r\ntext", true)
            case .failing: ("HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n", true)
            case .good: (head + "Content-Length: 4\r\n\r\ntext", true)
            }
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let text = String(buffer: unwrapInboundIn(data))
        guard let article = Article.allCases.first(where: { text.hasPrefix("GET /articles/\($0.rawValue) ") }) else {
            return
        }
        let (answer, isEnd) = article.answer
        let channel = context.channel
        channel.writeAndFlush(ByteBuffer(string: answer)).whenComplete { _ in
            if isEnd { channel.close(promise: nil) }
        }
    }

    static func start() async throws -> (url: String, channel: any Channel) {
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(BadUpstream()) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return ("http://127.0.0.1:\(channel.localAddress?.port ?? 0)", channel)
    }
}
