#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// Clearing takes the same at any number of entries, and is final even if the process dies at once after.
    @Suite("Clearing", .fewAtATime) struct ClearingTests {
        private static let count = TestLength.pick(plain: 5_000, long: 30_000)
        /// Real ones among them.
        private static let readable = 50

        /// In memory where the machine has such a file system: it is about our calls, not about the disk's.
        private func makeDirectory() throws -> String {
            let folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NSTemporaryDirectory()
            let directory = folder + "/DiskURLCacheTests-clearing-" + UUID().uuidString
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            return directory
        }

        private static func open(_ directory: String, files: any FileSystem = SystemFiles()) -> DiskStore {
            DiskStore(configuration: .init(directory: directory, capacity: 1 << 30), fileSystem: files)
        }

        private func fill(_ directory: String) throws {
            let store = Self.open(directory)
            for number in 0..<Self.readable { store.store(.test(testBody(number)), for: .test("\(number)")) }
            store.close()
            // The rest in name and size only, and rows for them.
            let files = SystemFiles()
            let paths = DiskPaths(directory: directory)
            var index = DiskIndex()
            for number in Self.readable..<Self.count {
                let name = RecordName(
                    key: KeyName(resource: UInt64(number), low: UInt64(number) &* 0x9E37_79B9_7F4A_7C15), slot: 0)
                let status = try paths.withRecord(name) { path in
                    Result {
                        try files.closeQuietly(files.openFile(path, O_WRONLY | O_CREAT))
                        return try files.status(at: path)
                    }
                }.get()
                // As if its head had been read: no pass reads it, and finds that it has none.
                var row = IndexRow(name, status)
                row.flags = []
                index.append(row)
            }
            try Data(IndexFile.encode(index)).write(to: URL(fileURLWithPath: paths.index))
        }

        static func runInChild(_ directory: String) {
            let files = FaultyFileSystem()
            let store = open(directory, files: files)
            store.flush()
            store.maintenance.pause()
            ChildProcess.say("\(store.entryCount)")
            _ = files.takeCalls()
            store.removeAll()
            ChildProcess.say("\(files.takeCalls().count)")
            kill(getpid(), SIGKILL)
        }

        @Test("Clearing takes a few system calls, and is final if the process dies at once")
        func manyEntries() throws {
            let directory = try makeDirectory()
            defer { try? FileManager.default.removeItem(atPath: directory) }
            try fill(directory)
            let child = try ChildProcess("clear", directory: directory)
            let said = child.remainingLines()
            #expect(child.wasKilled)
            try #require(said.count == 2)
            // Passes read the heads of files that are known by name alone, and these have none: some are gone by then.
            #expect(try #require(Int(said[0])) > Self.count / 2)
            // Each system call takes microseconds: a rename with what it needs, and two rows for the other caches.
            #expect(try #require(Int(said[1])) <= 30)
            let store = Self.open(directory)
            for number in 0..<Self.readable { #expect(!store.contains(.test("\(number)"))) }
            store.flush()
            for number in 0..<Self.readable { #expect(!store.contains(.test("\(number)"))) }
            #expect(store.entryCount == 0)
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory + "/records").isEmpty)
            #expect(
                !(try FileManager.default.contentsOfDirectory(atPath: directory).contains { $0.hasPrefix("trash") }))
            store.close()
        }
    }
#endif
