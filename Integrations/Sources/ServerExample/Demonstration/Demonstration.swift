import AsyncHTTPClient
import Foundation
import NIOCore
import NIOPosix

/// Shows the server, and checks what does not depend on time.
final class Demonstration {
    private static let articles = 200

    private let folder: URL
    private let upstream: Upstream
    private let client = HTTPClient(configuration: upstreamConfiguration)
    private var wrong: [String] = []

    private var directory: URL { folder.appendingPathComponent("cache", isDirectory: true) }

    static func run() async throws {
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("ServerExample-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let demonstration = Demonstration(folder: folder, upstream: try await Upstream.start())
        do {
            let server = try await demonstration.showLoad()
            try await demonstration.showShutdown(server)
            try await demonstration.showRestart()
            try await demonstration.showBadUpstream()
        } catch {
            demonstration.wrong.append("\(error)")
        }
        try await demonstration.client.shutdown()
        await demonstration.upstream.end()
        for failure in demonstration.wrong { complain("WRONG: \(failure)") }
        guard demonstration.wrong.isEmpty else { exit(1) }
        print("\nEverything that does not depend on time was checked, and holds.")
    }

    private init(folder: URL, upstream: Upstream) {
        self.folder = folder
        self.upstream = upstream
    }

    private func check(_ holds: Bool, _ words: @autoclosure () -> String) {
        if !holds { wrong.append(words()) }
    }

    private func start(_ name: String, upstream: String? = nil) throws -> ServerProcess {
        try ServerProcess(
            upstream: upstream ?? self.upstream.url, directory: directory,
            log: folder.appendingPathComponent("\(name).log"))
    }

    private func get(_ url: String) async throws -> (status: Int, text: String) {
        let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(30))
        return (Int(response.status.code), String(buffer: try await response.body.collect(upTo: 1 << 20)))
    }

    // MARK: Under load

    /// 32 callers ask for all articles in turn, 20 times each.
    /// - Returns: the requests at the upstream.
    private func load(_ server: ServerProcess) async throws -> Int {
        let (before, asked) = (upstream.requests, 20 * Self.articles)
        let answered = try await withThrowingTaskGroup(of: Int.self) { group in
            for caller in 0..<32 {
                group.addTask { [client, url = server.url] in
                    var answered = 0
                    for number in stride(from: caller, to: asked, by: 32) {
                        let request = HTTPClientRequest(url: "\(url)/articles/\(number % Self.articles)")
                        let response = try await client.execute(request, timeout: .seconds(30))
                        let body = try await response.body.collect(upTo: 1 << 20)
                        if response.status == .ok, body.readableBytes > 4_000 { answered += 1 }
                    }
                    return answered
                }
            }
            return try await group.reduce(0, +)
        }
        let atUpstream = upstream.requests - before
        print("    \(answered) of \(asked) requests are answered, with \(atUpstream) requests at the upstream")
        check(answered == asked, "\(asked - answered) requests failed")
        return atUpstream
    }

    /// - Returns: the server, which is still running.
    private func showLoad() async throws -> ServerProcess {
        print("\(Self.articles) articles of 4 KB, 32 requests at a time:\n")
        let server = try start("first")
        let asked = try await load(server)
        check(asked == Self.articles, "each article is fetched once, not \(asked) requests")
        return server
    }

    // MARK: The end

    private func showShutdown(_ server: ServerProcess) async throws {
        print("\nSIGTERM while a request is under way:\n")
        let answer = Task { [client, url = server.url] in
            let response = try await client.execute(
                HTTPClientRequest(url: "\(url)/articles/slow"), timeout: .seconds(30))
            return (Int(response.status.code), try await response.body.collect(upTo: 1 << 20).readableBytes)
        }
        while upstream.requests(for: "slow") == 0 { try await Task.sleep(for: .milliseconds(1)) }
        server.terminate()
        while await isOpen(server.port) { try await Task.sleep(for: .milliseconds(1)) }
        print("    new connections are refused")
        upstream.release.open()
        let (status, length) = try await answer.value
        print("    the request under way is answered: \(status), \(length) bytes")
        check(status == 200 && length > 4_000, "the request under way was not answered")
        let exit = server.end()
        print("    the process ends with \(exit.map(String.init) ?? "a signal")")
        check(exit == 0, "the server did not end in order")
    }

    private func isOpen(_ port: Int) async -> Bool {
        let channel = try? await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port).get()
        try? await channel?.close().get()
        return channel != nil
    }

    private func showRestart() async throws {
        print("\nA new process on the same folder:\n")
        let server = try start("second")
        let before = upstream.requests
        check(try await get("\(server.url)/articles/slow").status == 200, "the last article is lost")
        _ = try await load(server)
        let asked = upstream.requests - before
        check(asked == 0, "\(asked) articles were lost when the server ended")
        server.terminate()
        check(server.end() == 0, "the second server did not end in order")
    }

    // MARK: A bad upstream

    private func showBadUpstream() async throws {
        print("\nAn upstream whose answer …\n")
        let (url, channel) = try await BadUpstream.start()
        let server = try start("bad", upstream: url)
        for article in BadUpstream.Article.allCases {
            let (status, text) = try await get("\(server.url)/articles/\(article.rawValue)")
            print("    … \(article.words): \(status) \(text)")
            check(status == article.expected, "\(article.rawValue): \(status) instead of \(article.expected)")
            check(article.expected == 200 || text.contains("upstream"), "\(article.rawValue): no words why")
            check(try await get("\(server.url)/health").status == 200 && server.isRunning, "the server is ill")
        }
        let warnings = server.log(with: "warning")
        check(warnings.count == BadUpstream.Article.allCases.count - 1, "\(warnings.count) warnings in the log")
        print("\n    and in the log, for each such as:\n    \(warnings.first ?? "")")
        server.terminate()
        check(server.end() == 0, "the server that had a bad upstream did not end in order")
        try await channel.close()
    }
}
