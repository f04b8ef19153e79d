#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// Mixed sizes under a hard limit of the process's memory.
    ///
    /// `DISKURLCACHE_SOAK_MEGABYTES=20000 swift test -c release -Xswiftc -enable-testing --filter SoakTests` is longer
    /// than the long form.
    @Suite("Memory soak", .fewAtATime) struct SoakTests {
        /// Less than is stored, so that the store evicts in the plain form, too; half of it is the most that an entry
        /// may take.
        static let capacity = TestLength.pick(plain: 32 << 20, long: 256 << 20)
        static let total = TestLength.soakMegabytes
        static let threads = 4
        static let largest = 8 << 20
        /// What the disk layer may take beside the stacks and the bodies that the callers hold: an entry on its way
        /// to the disk, the index, and as much again for the allocator's gaps.
        static let limit = 64 << 20
        /// A body to store, and one read, for each thread.
        static let held = threads * 2 * largest

        /// From 1 KB to 8 MB, small ones more often; begins with its number and is filled with that.
        private static func body(_ number: Int, _ random: inout TestRandom) -> Data {
            let length = min(1024 << Int.random(in: 0...13, using: &random), largest)
            var body = Data(
                repeating: UInt8(truncatingIfNeeded: number), count: Int.random(in: length / 2...length, using: &random)
            )
            body.withUnsafeMutableBytes { $0.storeBytes(of: number, as: Int.self) }
            return body
        }

        private static func isWhole(_ body: Data) -> Bool {
            guard body.count >= 8 else { return false }
            let number = body.withUnsafeBytes { $0.loadUnaligned(as: Int.self) }
            return body.dropFirst(8).withUnsafeBytes { rest in
                guard let first = rest.first, let start = rest.baseAddress else { return false }
                // Each byte equals the one before it.
                return first == UInt8(truncatingIfNeeded: number) && memcmp(start, start + 1, rest.count - 1) == 0
            }
        }

        static func runInChild(_ directory: String) {
            let configuration = DiskConfiguration(directory: directory, capacity: capacity)
            let dropped = Mutex(0)
            let store = DiskStore(configuration: configuration)
            store.flush()
            // A hard limit: an allocation beyond it fails, and the process with it. Stacks of 8 MB count too.
            let stacks = (threads + 8) * 8 << 20
            var hard = rlimit()
            hard.rlim_cur = rlim_t(ProcessMemory.data + stacks + held + limit)
            hard.rlim_max = hard.rlim_cur
            setrlimit(__rlimit_resource_t(RLIMIT_DATA.rawValue), &hard)
            let before = ProcessMemory.highWater
            let stored = Mutex(0)
            let wrong = Mutex(0)
            onThreads(threads) { thread in
                var random = TestRandom(thread + 1)
                var step = 0
                while stored.withLock({ $0 }) < total << 20 {
                    step += 1
                    let number = step * threads + thread
                    let body = body(number, &random)
                    let result = store.store(.test(body, sequence: UInt64(number)), for: .test("\(number % 500)"))
                    if case .dropped = result { dropped.withLock { $0 += 1 } }
                    stored.withLock { $0 += body.count }
                    guard step % 4 == 0 else { continue }
                    let other = Int.random(in: 0..<500, using: &random)
                    if let found = store.body(.test("\(other)")), !isWhole(found) { wrong.withLock { $0 += 1 } }
                }
            }
            store.flush()
            let grown = ProcessMemory.highWater - before
            store.close()
            ChildProcess.say(
                "\(grown) \(dropped.withLock { $0 }) \(wrong.withLock { $0 })")
        }

        @Test("Mixed sizes under a hard memory limit: stays within it")
        func mixedSizes() throws {
            let fixture = try DiskFixture()
            let child = try ChildProcess("soak", directory: fixture.directory)
            let said = child.remainingLines()
            #expect(child.succeeded, "ended by the limit")
            let numbers = try #require(said.last).split(separator: " ").compactMap { Int($0) }
            try #require(numbers.count == 3)
            #expect(numbers[0] <= Self.limit + Self.held, "resident memory grew by that")
            #expect(numbers[1] == 0, "dropped")
            #expect(numbers[2] == 0, "wrong bytes")
            #expect(fixture.allocated() <= Self.capacity)
            let store = fixture.open(capacity: Self.capacity)
            store.flush()
            #expect(store.usage == fixture.allocatedByRecords())
            print("soak: \(Self.total) MB stored, resident memory grew by \(numbers[0] >> 20) MB")
        }
    }
#endif
