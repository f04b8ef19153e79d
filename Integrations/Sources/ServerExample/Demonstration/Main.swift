// An endpoint that asks an upstream through `CachingHTTPClient`, in a server of Hummingbird. From the folder of this
// package,
//
//     SERVER_EXAMPLE=1 swift run ServerExample
//
// starts an upstream, and servers as separate processes: with an empty cache, and again on the same folder. Sends them
// requests, ends them with SIGTERM, lets an upstream misbehave, and prints what was seen. One server alone, to try by
// hand:
//
//     SERVER_EXAMPLE=1 swift run ServerExample serve --upstream http://127.0.0.1:8081 --port 8080 \
//         --directory /tmp/articles [--private yes] [--redis 6379]
//
// Without a directory and without Redis it is a server without a cache. `Harness/harness.py` compares them.

import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import Logging
import RedisStorage

@main struct ServerExample {
    static func main() async throws {
        signal(SIGPIPE, SIG_IGN)
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.first {
        case "serve":
            LoggingSystem.bootstrap(StreamLogHandler.standardError)
            let settings = ServerSettings(Array(arguments.dropFirst()))
            let logger = Logger(label: "server")
            if settings.hasCache {
                try await serve(settings, logger)
            } else {
                try await serveBare(settings, logger)
            }
        case "upstream":
            let upstream = try await Upstream.start(isUneven: true)
            ServerSettings.tellPort(upstream.url.split(separator: ":").last.flatMap { Int($0) } ?? 0)
            try await Task.sleep(for: .seconds(86_400))
        case nil:
            try await Demonstration.run()
        default:
            complain("usage: ServerExample [serve --upstream URL [--port PORT] [--directory PATH] | upstream]")
            exit(64)
        }
    }
}

struct ServerSettings {
    /// The URL that the endpoint sends requests to.
    var upstream = ""
    /// Where answers are stored.
    var directory: URL?
    var port = 0

    var isPrivate = false
    /// The port of a Redis server on this machine, which takes the place of the folder.
    var redis: Int?

    var hasCache: Bool { directory != nil || redis != nil }

    func change(_ storage: inout DiskURLCache.Configuration) throws {
        if isPrivate { storage.isShared = false }
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
