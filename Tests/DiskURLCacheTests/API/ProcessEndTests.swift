#if os(Linux)
    import Foundation
    import FoundationNetworking
    import Testing

    @testable import DiskURLCache

    /// A process that ends, or forks, just after it stored responses: through the public class alone.
    @Suite(.fewAtATime) struct ProcessEndTests {
        private static let count = 100
        private static func url(_ number: Int) -> URL { Responses.url("/\(number)") }
        private static func body(_ number: Int) -> String { "\(number) " + String(repeating: "x", count: 20_000) }

        /// How many of the responses are there; a wrong one is an issue.
        private func found(in directory: String) -> Int {
            let cache = DiskURLCache(
                memoryCapacity: 0, diskCapacity: 64 << 20, directory: URL(fileURLWithPath: directory))
            let bodies = (0..<Self.count).map { cache.cachedResponse(for: URLRequest(url: Self.url($0)))?.data }
            for (number, body) in bodies.enumerated() where body != nil {
                #expect(body == Data(Self.body(number).utf8), "\(number)")
            }
            return bodies.count { $0 != nil }
        }

        /// What was stored outlives the process, however it ends: nothing waits to be written.
        @Test(arguments: ["exit", "kill", "flush"]) func whatWasStoredOutlivesTheProcess(how: String) throws {
            let scratch = try ScratchDirectory(how)
            let directory = scratch.appending("cache").path
            let child = try ChildProcess("end", directory: directory, ["HOW": how])
            #expect(child.remainingLines() == ["stored"])
            #expect(child.succeeded == (how != "kill"))
            #expect(found(in: directory) == Self.count)
        }

        /// What was removed is no file any more when the process ends next: a log-out before quitting leaves nothing.
        @Test(arguments: ["exit", "kill", "flush"]) func whatWasRemovedIsGoneWhenTheProcessEnds(how: String) throws {
            let scratch = try ScratchDirectory(how)
            let directory = scratch.appending("cache").path
            let child = try ChildProcess("end", directory: directory, ["HOW": how, "CLEARS": "1"])
            #expect(child.remainingLines() == ["stored"])
            #expect(child.succeeded == (how != "kill"))
            let files = FileManager.default.enumerator(atPath: directory)?.allObjects as? [String] ?? []
            #expect(!files.contains { $0.hasPrefix("trash-") || $0.hasPrefix("records/") })
        }

        /// The child looks up and flushes, and takes nothing of its parent's along.
        @Test func aForkLosesNothing() throws {
            let scratch = try ScratchDirectory("fork")
            let directory = scratch.appending("cache").path
            let child = try ChildProcess("end", directory: directory, ["HOW": "fork"])
            #expect(child.remainingLines() == ["stored", "child 0"])
            #expect(child.succeeded)
            #expect(found(in: directory) == Self.count)
        }

        static func runInChild(_ directory: String) throws {
            let cache = DiskURLCache(
                memoryCapacity: 64 << 20, diskCapacity: 64 << 20, directory: URL(fileURLWithPath: directory))
            if ChildProcess.argument("HOW") == "fork" {
                cache.flush()
                // Swift's runtime has locks, which a forked child inherits as they are: no other thread is to work at
                // that moment.
                cache.rest()
            }
            let clears = ChildProcess.argument("CLEARS") != nil
            // `flush()` waits for what the call itself leaves to the queue.
            let copies = clears && ChildProcess.argument("HOW") == "flush" ? 10 : 1
            for number in 0..<count * copies {
                cache.storeCachedResponse(
                    Responses.cached(url(number), body(clears ? 0 : number)), for: URLRequest(url: url(number)))
            }
            if clears { cache.removeAllCachedResponses() }
            ChildProcess.say("stored")
            switch ChildProcess.argument("HOW") {
            case "kill": kill(getpid(), SIGKILL)
            case "flush":
                cache.flush()
                exit(0)
            case "fork":
                typealias Fork = @convention(c) () -> pid_t
                let fork = unsafeBitCast(try #require(dlsym(nil, "fork")), to: Fork.self)
                // What a lookup makes once is made.
                _ = cache.cachedResponse(for: URLRequest(url: url(0)))
                let child = fork()
                if child == 0 {
                    _ = cache.cachedResponse(for: URLRequest(url: url(0)))
                    cache.flush()
                    _exit(0)
                }
                let status = ChildProcess.status(of: child)
                ChildProcess.say("child \(status)")
                cache.wake()
                cache.flush()
            default: exit(0)
            }
        }
    }
#endif
