#if os(Linux)
    import DiskURLCache
    import Foundation
    import Testing
    import FoundationNetworking

    /// A body that arrives faster than its client takes it does not fill the memory of the process.
    @Suite(.loadsOnLinux, .fewAtATime, .enabled(if: LoadingHarness.storesForSessions, "no loads through sessions"))
    struct FastBodyTests {
        private static let length = 32 << 20

        /// In a process of its own, whose memory nothing else takes. The delegate takes the first piece only when the
        /// whole body has arrived and left the memory.
        @Test(arguments: ["no-store", "max-age=86400"]) func whatADelegateDoesNotTakeLeavesTheMemory(
            control: String
        ) throws {
            let body = Data(count: Self.length)
            let origin = try OriginServer { _ in OriginResponse(fields: ["Cache-Control": control], body: body) }
            let scratch = try ScratchDirectory("fast-body")
            let child = try ChildProcess(
                "fast body", directory: scratch.appending("cache").path, ["ORIGIN": origin.url("/a").absoluteString],
                // What is freed leaves the process at once.
                under: ["/usr/bin/env", "MALLOC_MMAP_THRESHOLD_=8192"])
            #expect(child.remainingLines() == ["out of memory", "\(Self.length)"])
            #expect(child.succeeded)
        }

        static func runInChild(_ directory: String) throws {
            let cache = DiskURLCache(
                memoryCapacity: 8 << 20, diskCapacity: 512 << 20, directory: URL(fileURLWithPath: directory))
            cache.flush()
            let counter = Counter()
            let session = LoadingHarness.session(of: cache, delegate: counter)
            let url = try #require(URL(string: ChildProcess.argument("ORIGIN") ?? ""))
            let start = try residentMemory()
            session.dataTask(with: url).resume()
            // First most of it is there, wherever that is: in memory, or in the file that has no other place.
            var patience = Patience(times: 2)
            while try residentMemory() + filesInUse() < start + length / 2, !patience.isOver() { usleep(1_000) }
            var memory = 0
            var isOut = false
            while !isOut, !patience.isOver() {
                usleep(1_000)
                memory = try residentMemory() - start
                isOut = try filesInUse() > length - (4 << 20) && memory < length / 2
            }
            ChildProcess.say(isOut ? "out of memory" : "\(memory >> 20) MB more, \(try filesInUse() >> 20) MB in files")
            counter.goesOn.signal()
            #expect(counter.hasEnded.isSignalled("the end of the load"))
            ChildProcess.say("\(counter.bytes.withLock { $0 })")
            cache.flush()
        }

        private static func residentMemory() throws -> Int {
            let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
            let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
            return try #require(line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) }) << 10
        }

        /// Bytes in the open file of the body: it has no name, or that of a body that arrives.
        private static func filesInUse() throws -> Int {
            let folder = "/proc/self/fd/"
            return try FileManager.default.contentsOfDirectory(atPath: folder).reduce(0) { sum, name in
                let path = try? FileManager.default.destinationOfSymbolicLink(atPath: folder + name)
                guard path?.contains("incoming-") == true else { return sum }
                var status = stat()
                return stat(folder + name, &status) == 0 ? sum + Int(status.st_size) : sum
            }
        }

        private final class Counter: NSObject, URLSessionDataDelegate, Sendable {
            let bytes = Guarded(0)
            let goesOn = DispatchSemaphore(value: 0)
            let hasEnded = DispatchSemaphore(value: 0)

            func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
                let isFirst = bytes.withLock { bytes in
                    bytes += data.count
                    return bytes == data.count
                }
                if isFirst { _ = goesOn.wait(timeout: .now() + .seconds(6 * Patience.seconds)) }
            }

            func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
                hasEnded.signal()
            }
        }
    }
#endif
