import ExampleSupport
import FlyingSocks
import Foundation

/// A broken tier: each response is wrong in one of these ways. The number at the end of the path chooses the way.
///
/// One way is left out: a head that is cut off before its end. On Linux Foundation's `URLSession` crashes then
/// ("Transfer completed, but there's no response"), with a cache or without.
enum Garbage: Int, CaseIterable {
    case notHTTP
    case noStatus
    case shortBody
    case brokenChunks
    case notGzip
    case serverError
    case unaskedNotModified
    case hangsUp
    case neverAnswers
    case neverEnds

    static func of(_ path: String) -> Garbage? {
        path.split { !$0.isNumber }.last.flatMap { Int($0) }.flatMap { Garbage(rawValue: $0 % allCases.count) }
    }

    var words: String {
        switch self {
        case .notHTTP: "bytes that are not HTTP"
        case .noStatus: "a status that is no number"
        case .shortBody: "a body shorter than promised"
        case .brokenChunks: "broken chunks"
        case .notGzip: "gzip that is none"
        case .serverError: "status 500"
        case .unaskedNotModified: "a 304 for another version"
        case .hangsUp: "nothing, and hangs up"
        case .neverAnswers: "nothing, and waits"
        case .neverEnds: "a body that never ends"
        }
    }

    /// A cache that stored such a response would serve it for an hour.
    private static let lifetime = "Cache-Control: max-age=3600\r\nETag: \"garbage\"\r\n"

    var bytes: String {
        let ok = "HTTP/1.1 200 OK\r\n\(Self.lifetime)"
        return switch self {
        case .notHTTP: "I am a teapot, short and stout.\r\n\r\n"
        case .noStatus: "HTTP/1.1 fine\r\n\(Self.lifetime)\r\n"
        case .shortBody: "\(ok)Content-Length: 5000\r\n\r\n/stock version 9\n"
        case .brokenChunks: "\(ok)Transfer-Encoding: chunked\r\n\r\n5\r\nstock\r\nXYZ\r\n"
        case .notGzip: "\(ok)Content-Encoding: gzip\r\nContent-Length: 12\r\n\r\nstock stock!"
        case .serverError: "HTTP/1.1 500 Oops\r\n\(Self.lifetime)Content-Length: 4\r\n\r\noops"
        case .unaskedNotModified: "HTTP/1.1 304 Not Modified\r\n\(Self.lifetime)\r\n"
        case .hangsUp, .neverAnswers: ""
        case .neverEnds: "\(ok)\r\n/stock version 9\n"
        }
    }

    var hangsUp: Bool {
        switch self {
        case .neverAnswers, .neverEnds: false
        case .notHTTP, .noStatus, .shortBody, .brokenChunks, .notGzip, .serverError, .unaskedNotModified, .hangsUp: true
        }
    }
}

/// Listens at the port of the tier.
enum GarbageProcess {
    static func run(_ arguments: [String]) async throws {
        guard let port = arguments.first.flatMap({ UInt16($0) }) else { throw Failure("not started by hand") }
        signal(SIGPIPE, SIG_IGN)
        let listener = try Socket(domain: AF_INET)
        try listener.setValue(true, for: .localAddressReuse)
        try listener.bind(to: sockaddr_in.inet(ip4: "127.0.0.1", port: port))
        try listener.listen()
        Thread.detachNewThread {
            while let file = try? listener.accept().file {
                Thread.detachNewThread { answer(Socket(file: file)) }
            }
        }
        try Orders.reply(true)
        for await _ in Orders.stream(of: Bool.self) {}
    }

    private static func answer(_ socket: Socket) {
        defer { try? socket.close() }
        var head = ""
        while !head.contains("\r\n\r\n") {
            guard let bytes = try? socket.read(atMost: 4096), !bytes.isEmpty else { return }
            head += String(decoding: bytes, as: UTF8.self)
        }
        let parts = head.split(separator: " ")
        guard parts.count > 1, let garbage = Garbage.of(String(parts[1])) else { return }
        _ = try? socket.write(Data(garbage.bytes.utf8))
        // Until the client closes the connection.
        if !garbage.hangsUp { while (try? socket.read(atMost: 4096)) != nil {} }
    }
}
