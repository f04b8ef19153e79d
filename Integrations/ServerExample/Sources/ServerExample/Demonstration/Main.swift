// An endpoint that asks an upstream through `CachingHTTPClient`, in a server of Hummingbird:
//
//     swift run -c release --package-path Integrations/ServerExample ServerExample [seconds of load]
//
// starts an upstream, and servers as processes of their own: without the cache, with it, and again on the same folder. Puts load on them
// with wrk, ends them with SIGTERM, lets an upstream misbehave, and prints what was seen. One server alone, to try by hand:
//
//     … ServerExample serve --upstream http://127.0.0.1:8081 --port 8080 --directory /tmp/articles [--private yes] [--redis 6379]
//
// `harness.py` beside the package compares a server without a cache, with a private one, a shared one, and Redis.

import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import Logging
import Metrics
import RedisStorage

@main struct ServerExample {
    static func main() async throws {
        signal(SIGPIPE, SIG_IGN)
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "serve" {
            LoggingSystem.bootstrap(StreamLogHandler.standardError)
            let metrics = PrometheusText()
            MetricsSystem.bootstrap(metrics)
            try await serve(ServerSettings(Array(arguments.dropFirst())), metrics, Logger(label: "server"))
        } else if arguments.first == "upstream" {
            let upstream = try await Upstream.start(isUneven: true)
            ServerSettings.tellPort(upstream.url.split(separator: ":").last.flatMap { Int($0) } ?? 0)
            try await Task.sleep(for: .seconds(86_400))
        } else if arguments.count <= 1, let seconds = Int(arguments.first ?? "5"), (1...600).contains(seconds) {
            try await Demonstration.run(seconds: seconds)
        } else {
            complain("usage: ServerExample [seconds of load] | serve --upstream URL [--port PORT] [--directory PATH]")
            exit(64)
        }
    }
}

struct ServerSettings {
    /// What the endpoint asks.
    var upstream = ""
    /// Where answers are stored; nil for a server that stores none.
    var directory: URL?
    var port = 0

    var isPrivate = false
    /// The port of a Redis server on this machine, which takes the place of the folder.
    var redis: Int?

    /// Without a place for it nothing is stored.
    var cacheOptions: DiskURLCache.Options? {
        directory == nil && redis == nil ? DiskURLCache.Options(storage: .never) : nil
    }

    func change(_ storage: inout DiskURLCache.Configuration) throws {
        if isPrivate { storage.isShared = false }
        if directory == nil { storage.diskCapacity = 0 }
        guard let redis else { return }
        storage.diskStorage = try RedisStorage(.init(.host("127.0.0.1", port: redis), prefix: "articles"))
    }

    static func tellPort(_ port: Int) {
        print("port \(port)")
        fflush(nil)
    }

    init(_ arguments: [String]) {
        for (name, value) in zip(arguments, arguments.dropFirst()) {
            switch name {
            case "--upstream": upstream = value
            case "--directory": directory = URL(fileURLWithPath: value, isDirectory: true)
            case "--port": port = Int(value) ?? 0
            case "--private": isPrivate = value == "yes"
            case "--redis": redis = Int(value)
            default: break
            }
        }
        guard upstream.hasPrefix("http") else {
            complain("serve needs --upstream URL")
            exit(64)
        }
    }
}

func complain(_ text: String) {
    FileHandle.standardError.write(Data((text + "\n").utf8))
}
