#if os(Linux)
    import DiskURLCache
    import Foundation
    import Testing
    import FoundationNetworking

    /// A process that loads for long: the cache adds no descriptors, no threads and no memory to what `URLSession`
    /// takes by itself, which is measured in the same run, since Foundation's own share grows with each load.
    @Suite(
        .fewAtATime,
        .enabled(if: LoadingHarness.storesForSessions, "no loads through sessions"))
    struct GrowthTests {
        @Test func aLongLifeAddsNothing() throws {
            let scratch = try ScratchDirectory("growth")
            let child = try ChildProcess("growth", directory: scratch.appending("cache").path)
            let lines = child.remainingLines()
            print(lines.joined(separator: "\n"))
            #expect(lines.last == "as without", "\(lines)")
            #expect(child.succeeded)
        }

        /// What a library says besides is no reason to end a process.
        @Test func aStandardErrorThatIsFullEndsNoProcess() throws {
            let scratch = try ScratchDirectory("full")
            let child = try ChildProcess("full log", directory: scratch.appending("cache").path)
            #expect(child.remainingLines() == ["lives"] && child.succeeded)
        }

        static func runWithFullLog(_ directory: String) {
            dup2(open("/dev/full", O_WRONLY), STDERR_FILENO)
            // The log says that nothing fits.
            let cache = DiskURLCache(
                memoryCapacity: 1, diskCapacity: 1, directory: URL(fileURLWithPath: directory, isDirectory: true))
            if cache.openingError != nil { ChildProcess.say("lives") }
        }

        private struct Use {
            var descriptors: Int
            var threads: Int
            var bytes: Int

            /// `malloc_trim`, which the module of the C library does not show.
            private static let trim: (@convention(c) (Int) -> Int32)? = dlsym(nil, "malloc_trim").map {
                unsafeBitCast($0, to: (@convention(c) (Int) -> Int32).self)
            }

            static func now() -> Use {
                // What is free goes back to the system, so that resident memory is what is in use.
                _ = trim?(0)
                return Use(
                    descriptors: count("/proc/self/fd"), threads: count("/proc/self/task"),
                    bytes: ProcessMemory.resident)
            }

            private static func count(_ folder: String) -> Int {
                (try? FileManager.default.contentsOfDirectory(atPath: folder).count) ?? 0
            }
        }

        /// Rounds of loads without the cache and with it, in turn. The first rounds fill pools, tables and the cache,
        /// and do not count.
        static func runInChild(_ directory: String) throws {
            let origin = try OriginServer { request in
                switch request.path.suffix(1) {
                case "0": .ok("never", ["Cache-Control": "no-store"])
                case "1" where request.fields["If-None-Match"] != nil: .status(304, "Not Modified", ["ETag": "\"v\""])
                case "1": .ok("checked", ["Cache-Control": "no-cache", "ETag": "\"v\""])
                case "2": OriginResponse(body: Data(count: 10), ending: .cutBody(after: 3))
                case "3": .status(302, "Found", ["Location": "/4"])
                default: .ok("stored", ["Cache-Control": "max-age=86400"])
                }
            }
            let cache = DiskURLCache(
                memoryCapacity: 1 << 20, diskCapacity: 16 << 20, directory: URL(fileURLWithPath: directory))
            let plain = URLSession(configuration: .ephemeral)
            let cached = cache.makeSession(configuration: .ephemeral)
            let end = Date(timeIntervalSinceNow: TimeInterval(TestLength.soakSeconds))
            let loads = TestLength.pick(plain: 200, long: 400)
            var growth = (plain: 0, cached: 0)
            var (rounds, first) = (0, Use.now())
            var last = first
            while rounds < 8 || Date() < end {
                for (session, isCached) in [(plain, false), (cached, true)] {
                    load(loads, origin, session)
                    if isCached { cache.flush() }
                    let use = Use.now()
                    if rounds >= 4 {
                        if isCached {
                            growth.cached += use.bytes - last.bytes
                        } else {
                            growth.plain += use.bytes - last.bytes
                        }
                    } else {
                        first = use
                    }
                    last = use
                }
                rounds += 1
                // Who waits for this process waits for each round, however slow the machine is.
                ChildProcess.say("round \(rounds)")
            }
            let counted = (rounds - 4) * loads
            ChildProcess.say("\(counted) loads each: \(growth.plain) bytes without, \(growth.cached) with")
            ChildProcess.say(
                "descriptors \(first.descriptors) to \(last.descriptors), threads \(first.threads) to \(last.threads)")
            // Pages and threads of pools come and go: a leak of 100 bytes a load is more than these from 42,000 loads
            // on, of which a run of a minute makes 60,000.
            let isSteady =
                growth.cached <= growth.plain + (2 << 20) + counted * 50 && last.descriptors <= first.descriptors + 8
                && last.threads <= first.threads + 16
            ChildProcess.say(isSteady ? "as without" : "more than without")
        }

        private static func load(_ count: Int, _ origin: OriginServer, _ session: URLSession) {
            let group = DispatchGroup()
            let slots = DispatchSemaphore(value: 8)
            for number in 0..<count {
                slots.isSignalled("the end of a load")
                group.enter()
                session.dataTask(with: origin.url("/\(number % 50)")) { _, _, _ in
                    slots.signal()
                    group.leave()
                }.resume()
            }
            group.wait(for: "the last loads")
        }
    }
#endif
