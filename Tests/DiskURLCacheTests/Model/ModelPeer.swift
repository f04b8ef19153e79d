#if os(Linux)
    import Foundation

    @testable import DiskURLCache

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// Another process with a cache on the same directory. It does one thing at a time, and says when it is done.
    final class ModelPeer: @unchecked Sendable {
        // `@unchecked Sendable`: scripts run one after the other, and ask by one step at a time.
        private let child: ChildProcess

        init() throws {
            child = try ChildProcess("model", directory: NSTemporaryDirectory())
        }

        deinit {
            child.release()
        }

        /// What the child says of a command; nil where it has ended.
        func ask(_ words: String...) -> String? {
            child.send(words.joined(separator: " "))
            return child.nextLine()
        }

        // MARK: In the child

        static func runInChild() {
            let clock = ManualClock()
            var cache: DiskURLCache?
            while let line = readLine() {
                let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
                if words[0] == "clock" {
                    clock.set(Date(timeIntervalSince1970: Double(words[1]) ?? 0))
                    ChildProcess.say("set")
                } else if words[0] == "open" {
                    cache?.store.close()
                    clock.set(Date(timeIntervalSince1970: Double(words[5]) ?? 0))
                    var settings = DiskURLCache.Configuration(
                        memoryCapacity: Int(words[2]) ?? 0, diskCapacity: Int(words[3]) ?? 0,
                        directory: URL(fileURLWithPath: words[1]))
                    settings.clock = clock.wallClock
                    if words[4] == "slow" { settings.fileSystem = ModelRunner.slowFiles() }
                    cache = DiskURLCache(configuration: settings)
                    ChildProcess.say("opened")
                } else if words[0] == "close" {
                    cache?.store.close()
                    cache = nil
                    ChildProcess.say("closed")
                } else if let cache {
                    clock.set(Date(timeIntervalSince1970: Double(words[1]) ?? 0))
                    ChildProcess.say(answer(to: words[0], Array(words.dropFirst(2)), cache))
                }
            }
        }

        private static func answer(to command: String, _ words: [String], _ cache: DiskURLCache) -> String {
            guard command != "clear" else {
                cache.removeAllCachedResponses()
                return "cleared"
            }
            guard let url = URL(string: words[0]) else { return "not understood" }
            var request = URLRequest(url, ["Accept-Language": words[2]])
            if words[1] != "-" { request.setValue(words[1], forHTTPHeaderField: "Authorization") }
            switch command {
            case "remove":
                cache.removeCachedResponse(for: request)
                return "removed"
            case "store":
                var fields: [String: String] = [:]
                for field in words[3].split(separator: "|") {
                    let parts = field.split(separator: "=", maxSplits: 1).map(String.init)
                    fields[parts[0]] = parts[1]
                }
                let body = String(decoding: Data(base64Encoded: words[4]) ?? Data(), as: UTF8.self)
                cache.storeCachedResponse(Responses.cached(url, body, fields: fields), for: request)
                cache.flush()
                return "stored"
            default:
                // What another process removed is gone within a second: the model does not wait for it.
                (cache.store.disk as? DiskStore)?.checkNow()
                guard let found = cache.cachedResponse(for: request), let response = found.response as? HTTPURLResponse
                else { return "nothing" }
                return [
                    "found", response.value(forHTTPHeaderField: "X-Token") ?? "-",
                    response.value(forHTTPHeaderField: "X-Check") ?? "-", found.data.base64EncodedString(),
                ].joined(separator: " ")
            }
        }
    }
#else
    /// Elsewhere there is no second process: a script runs without one.
    enum ModelPeer {
        func ask(_ words: String...) -> String? {
            switch self {}
        }
    }
#endif
