#if os(Linux)
    import DiskURLCache
    import Foundation
    import Testing
    import FoundationNetworking

    /// The one line of the README, in a process of its own, as an app has it: `URLSession.shared` takes what it finds
    /// at its first use.
    @Suite(.fewAtATime, .enabled(if: LoadingHarness.storesForSessions, "no loads through sessions")) struct OneLineTests
    {
        @Test func oneLineMakesTheSharedSessionCache() throws {
            let origin = try OriginServer { request in
                request.path == "/never"
                    ? .ok("\(request.number)", ["Cache-Control": "no-store"])
                    : .ok("\(request.number)", ["Cache-Control": "max-age=86400"])
            }
            let scratch = try ScratchDirectory("one-line")
            // Cold, then warm: a second process on the same directory.
            for number in 1...2 {
                let child = try ChildProcess(
                    "one line", directory: scratch.appending("cache").path, ["ORIGIN": origin.url("").absoluteString])
                // What may be stored comes from the network once in all; what may not, each time.
                #expect(
                    child.remainingLines() == [
                        "handler 1", "async 1", "never \(number * 2)", "never \(number * 2 + 1)",
                    ])
                #expect(child.succeeded)
            }
            #expect(origin.requests.map(\.path) == ["/stored", "/never", "/never", "/never", "/never"])
        }

        static func runInChild(_ directory: String) throws {
            URLCache.shared = DiskURLCache(
                memoryCapacity: 16 << 20, diskCapacity: 200 << 20, directory: URL(fileURLWithPath: directory))
            let origin = ChildProcess.argument("ORIGIN") ?? ""
            let stored = try #require(URL(string: origin + "/stored"))
            let never = try #require(URL(string: origin + "/never"))
            ChildProcess.say("handler \(text(of: stored))")
            let ended = DispatchSemaphore(value: 0)
            Task {
                let body = try? await URLSession.shared.data(from: stored).0
                ChildProcess.say("async \(String(decoding: body ?? Data(), as: UTF8.self))")
                ended.signal()
            }
            ended.isSignalled("the async load")
            for _ in 1...2 { ChildProcess.say("never \(text(of: never))") }
            (URLCache.shared as? DiskURLCache)?.flush()
        }

        /// The line after the first use of the shared session, which then has neither the loader nor the cache.
        @Test func theLineServesASharedSessionThatWasUsedBefore() throws {
            let origin = try OriginServer.counting()
            let scratch = try ScratchDirectory("late-line")
            let child = try ChildProcess(
                "late line", directory: scratch.appending("cache").path, ["ORIGIN": origin.url("").absoluteString])
            #expect(child.remainingLines() == ["cached"])
            #expect(child.succeeded)
        }

        static func runLateInChild(_ directory: String) throws {
            let origin = ChildProcess.argument("ORIGIN") ?? ""
            _ = text(of: try #require(URL(string: origin + "/before")))
            let cache = DiskURLCache(
                memoryCapacity: 16 << 20, diskCapacity: 200 << 20, directory: URL(fileURLWithPath: directory))
            URLCache.shared = cache
            let url = try #require(URL(string: origin + "/a"))
            let end = ContinuousClock.now + .seconds(60)
            while cache.statistics.memoryHits == 0, .now < end { _ = text(of: url) }
            if cache.contains(URLRequest(url: url)), text(of: url) == text(of: url) { ChildProcess.say("cached") }
        }

        private static func text(of url: URL) -> String {
            let result = Guarded("")
            let ended = DispatchSemaphore(value: 0)
            URLSession.shared.dataTask(with: url) { data, _, error in
                result.withLock { $0 = error.map { "\($0)" } ?? String(decoding: data ?? Data(), as: UTF8.self) }
                ended.signal()
            }.resume()
            ended.isSignalled("the load of \(url)")
            return result.withLock { $0 }
        }
    }
#endif
