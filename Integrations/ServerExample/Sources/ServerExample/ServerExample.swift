// An endpoint that asks an upstream through `CachingHTTPClient`, in a server of Hummingbird:
//
//     swift run -c release --package-path Integrations/ServerExample ServerExample [seconds of load]
//
// starts an upstream, and servers as processes of their own: without the cache, with it, and again on the same folder. Puts load on them
// with wrk, ends them with SIGTERM, lets an upstream misbehave, and prints what was seen. One server alone, to try by hand:
//
//     … ServerExample serve --upstream http://127.0.0.1:8081 --port 8080 --directory /tmp/articles

import Foundation

@main struct ServerExample {
    static func main() async throws {
        signal(SIGPIPE, SIG_IGN)
        let arguments = CommandLine.arguments.dropFirst()
        if arguments.first == "serve" {
            try await serve(ServerSettings(Array(arguments.dropFirst())))
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
    /// Where answers are stored; nil for a server without a cache.
    var directory: URL?
    var port = 0

    init(_ arguments: [String]) {
        for (name, value) in zip(arguments, arguments.dropFirst()) {
            switch name {
            case "--upstream": upstream = value
            case "--directory": directory = URL(fileURLWithPath: value, isDirectory: true)
            case "--port": port = Int(value) ?? 0
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
