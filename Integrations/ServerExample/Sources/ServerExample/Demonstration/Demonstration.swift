import AsyncHTTPClient
import Foundation
import NIOCore
import NIOPosix

/// Shows the server, and checks what does not depend on time.
final class Demonstration {
    private let seconds: Int
    private let folder: URL
    private let upstream: Upstream
    private let client = HTTPClient()
    private var wrong: [String] = []

    private var directory: URL { folder.appendingPathComponent("cache", isDirectory: true) }

    static func run(seconds: Int) async throws {
        guard let tool = Load.tool else {
            print("Skipped: wrk, which puts the load on, is not installed. On Debian: apt-get install wrk")
            return
        }
        let folder = FileManager.default.temporaryDirectory
            .appendingPathComponent("ServerExample-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let demonstration = Demonstration(seconds: seconds, folder: folder, upstream: try await Upstream.start())
        do {
            let server = try await demonstration.showLoad(tool)
            try await demonstration.showHealth(server)
            try await demonstration.showShutdown(server)
            try await demonstration.showRestart(tool)
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

    private init(seconds: Int, folder: URL, upstream: Upstream) {
        (self.seconds, self.folder, self.upstream) = (seconds, folder, upstream)
    }

    private func check(_ holds: Bool, _ words: @autoclosure () -> String) {
        if !holds { wrong.append(words()) }
    }

    private func start(_ name: String, upstream: String? = nil, isCached: Bool = true) throws -> ServerProcess {
        try ServerProcess(
            upstream: upstream ?? self.upstream.url, directory: isCached ? directory : nil,
            log: folder.appendingPathComponent("\(name).log"))
    }

    private func get(_ url: String) async throws -> (status: Int, text: String) {
        let response = try await client.execute(HTTPClientRequest(url: url), timeout: .seconds(30))
        return (Int(response.status.code), String(buffer: try await response.body.collect(upTo: 1 << 20)))
    }

    // MARK: Under load

    private func row(_ name: String, _ load: Load, _ asked: Int) {
        func cell(_ text: String, _ width: Int) -> String {
            String(repeating: " ", count: max(0, width - text.count)) + text
        }
        func milliseconds(_ seconds: Double) -> String { String(format: "%.1f ms", seconds * 1_000) }
        print(
            name.padding(toLength: 34, withPad: " ", startingAt: 0), cell("\(load.answered)", 9),
            cell("\(Int(Double(load.answered) / load.duration))", 9), cell(milliseconds(load.median), 9),
            cell(milliseconds(load.slowest), 9), cell("\(asked)", 9))
        check(load.errors == 0, "\(name): \(load.errors) requests failed")
    }

    private func load(_ server: ServerProcess, _ tool: String) throws -> (load: Load, asked: Int) {
        let before = upstream.requests
        let load = try Load(of: server.url, seconds: seconds, tool: tool, folder: folder)
        return (load, upstream.requests - before)
    }

    /// - Returns: the server with the cache, which goes on.
    private func showLoad(_ tool: String) async throws -> ServerProcess {
        print(
            """
            wrk: 32 connections, \(seconds) s for each row, \(Load.articles) articles of 4 KB in turn. The upstream takes \
            \(Upstream.delay.components.attoseconds / 1_000_000_000_000_000) ms.
            \(ProcessInfo.processInfo.activeProcessorCount) cores for wrk, server and upstream.

                                                answered     per s    median  99 of 100  upstream
            """)
        let bare = try start("bare", isCached: false)
        let (bareLoad, bareAsked) = try load(bare, tool)
        row("without the cache", bareLoad, bareAsked)
        check(bareAsked >= bareLoad.answered, "without a cache each request is one at the upstream")
        bare.terminate()
        check(bare.end() == 0, "the server without a cache did not end in order")

        let server = try start("first")
        let (first, asked) = try load(server, tool)
        row("with the cache, empty at first", first, asked)
        check(asked == Load.articles, "each article is fetched once, not \(asked) requests")
        return server
    }

    // MARK: Health

    private func showHealth(_ server: ServerProcess) async throws {
        let text = try await get("\(server.url)/metrics").text
        let lines = text.split(separator: "\n").filter { $0.hasPrefix("http_cache_") }
        print("\nGET /metrics, of the cache:\n")
        for line in lines { print("    \(line)") }
        func value(_ name: String) -> Int? {
            lines.first { $0.hasPrefix(name) }.flatMap { $0.split(separator: " ").last }.flatMap { Int($0) }
        }
        check(value("http_cache_stores{") == Load.articles, "the metrics have other stores")
        check(value("http_cache_misses{") ?? 0 >= Load.articles, "the metrics have too few misses")
        check(
            value("http_cache_hits{cache=\"articles\",layer=\"memory\"}") ?? 0 > Load.articles,
            "the metrics have too few hits")
        check(
            text.contains("http_server_request_duration_seconds_count{"),
            "the metrics have nothing of the server itself")
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

    private func showRestart(_ tool: String) async throws {
        print("\nA new process on the same folder:\n")
        let server = try start("second")
        let before = upstream.requests
        check(try await get("\(server.url)/articles/slow").status == 200, "the last article is lost")
        let (second, _) = try load(server, tool)
        let asked = upstream.requests - before
        row("with the cache, from disk", second, asked)
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
