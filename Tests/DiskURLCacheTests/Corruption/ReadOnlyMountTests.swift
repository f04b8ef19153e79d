#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// A file system of a test's own, which can be made read-only by the system itself.
    final class ScratchMount {
        enum Kind: Sendable { case ext4, tmpfs }

        struct Failed: Error {}

        private let scratch: ScratchDirectory
        private let kind: Kind
        private let options: String
        private var image: String { scratch.appending("image").path }
        var path: String { scratch.appending("mounted").path }

        /// Tried by doing it once: it takes root, and for ext4 loop devices and `mkfs.ext4`.
        static let hasExt4 = (try? ScratchMount(.ext4)) != nil
        static let canBreakDown = (try? ScratchMount(.ext4).errorTrigger()).map { access($0, W_OK) == 0 } ?? false
        static let hasTmpfs = (try? ScratchMount(.tmpfs)) != nil

        /// - Parameter options: of a tmpfs.
        init(_ kind: Kind, _ options: String = "size=32m") throws {
            self.kind = kind
            self.options = options
            scratch = try ScratchDirectory("mount")
            guard getuid() == 0 else { throw Failed() }
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            if kind == .ext4 {
                guard FileManager.default.createFile(atPath: image, contents: nil), truncate(image, 32 << 20) == 0
                else { throw Failed() }
                try Self.run("mkfs.ext4", ["-q", "-F", image])
            }
            try mount()
        }

        deinit {
            try? Self.run("umount", ["-l", path])
        }

        func mount() throws {
            switch kind {
            case .ext4: try Self.run("mount", ["-t", "ext4", "-o", "loop,errors=remount-ro", image, path])
            case .tmpfs: try Self.run("mount", ["-t", "tmpfs", "-o", options, "tmpfs", path])
            }
        }

        /// "ro" or "rw".
        func remount(_ mode: String) throws {
            try patiently { try Self.run("mount", ["-o", "remount," + mode, path]) }
        }

        /// What the system does when it finds the file system damaged: read-only from now on, whoever has files open.
        func breakDown() throws {
            let file = open(try errorTrigger(), O_WRONLY)
            guard file >= 0 else { throw Failed() }
            _ = write(file, "test", 4)
            close(file)
        }

        /// Where the system is told to find an error.
        func errorTrigger() throws -> String {
            let device = try String(contentsOfFile: "/proc/mounts", encoding: .utf8).split(separator: "\n")
                .first { $0.split(separator: " ").dropFirst().first == path[...] }?
                .split(separator: " ").first?.split(separator: "/").last
            guard let device else { throw Failed() }
            return "/sys/fs/ext4/\(device)/trigger_fs_error"
        }

        func repair() throws {
            try patiently { try Self.run("umount", [path]) }
            // 1: errors were found and corrected.
            try Self.run("e2fsck", ["-f", "-y", image], isAllowed: { $0 <= 1 })
            try mount()
        }

        /// A process that another test is just starting may have our files open for a moment. The system tells nobody
        /// when they are closed, so the command itself is the question; each try is a process of its own and takes
        /// milliseconds.
        private func patiently(_ work: () throws -> Void) throws {
            for _ in 0..<2_000 {
                if (try? work()) != nil { return }
            }
            try work()
        }

        private static func run(_ tool: String, _ arguments: [String], isAllowed: (Int32) -> Bool = { $0 == 0 }) throws
        {
            let folders = ["/usr/sbin/", "/sbin/", "/usr/bin/", "/bin/"]
            guard let path = folders.map({ $0 + tool }).first(where: { access($0, X_OK) == 0 }) else { throw Failed() }
            let process = Process()
            process.executableURL = URL(fileURLWithPath: path)
            process.arguments = arguments
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            try process.run()
            process.waitUntilExit(of: "\(tool)")
            guard isAllowed(process.terminationStatus) else { throw Failed() }
        }
    }

    /// Read-only by the system itself: the file system becomes read-only while a cache uses it.
    @Suite("Read-only file system", .fewAtATime) struct ReadOnlyMountTests {
        private static let count = 30

        private func open(_ mount: ScratchMount, _ log: EventLog) -> DiskStore {
            DiskStore(
                configuration: .init(directory: mount.path + "/cache", capacity: 4 << 20), report: log.report)
        }

        private func fill(_ store: DiskStore) {
            for number in 0..<Self.count { store.store(.test(testBody(number, length: 5000)), for: .test("\(number)")) }
            store.flush()
        }

        private func expectAll(_ store: DiskStore, _ comment: Comment) {
            for number in 0..<Self.count {
                if store.body(.test("\(number)")) != testBody(number, length: 5000) {
                    Issue.record("\(number) is lost: \(comment)")
                }
            }
        }

        /// Hits go on, stores are dropped, eviction ends, another cache can read as well.
        private func expectReadable(_ mount: ScratchMount, _ store: DiskStore, _ log: EventLog) {
            for round in 0..<3 {
                let results = [
                    store.store(.test(testBody(100), sequence: 2), for: .test("3")),
                    store.store(.test(testBody(101)), for: .test("new \(round)")),
                ]
                store.flush()
                #expect(results.allSatisfy { $0.refusal == DiskWriteResult.words(EROFS) })
                #expect(store.variants(of: .test("new \(round)")).isEmpty)
                expectAll(store, "round \(round)")
            }
            store.capacity = 60 << 10
            store.flush()
            expectAll(store, "above the capacity")
            store.capacity = 4 << 20
            store.flush()
            let other = open(mount, EventLog())
            expectAll(other, "another cache")
            other.flush()
            expectAll(other, "another cache, opened")
            other.close()
        }

        private func expectWorking(_ mount: ScratchMount, _ store: DiskStore) throws {
            expectAll(store, "writable again")
            store.store(.test(testBody(102), sequence: 3), for: .test("3"))
            store.store(.test(testBody(103)), for: .test("new"))
            store.flush()
            #expect(store.body(.test("3")) == testBody(102))
            #expect(store.body(.test("new")) == testBody(103))
            #expect(store.isOwner)
            let names = try FileManager.default.contentsOfDirectory(atPath: mount.path + "/cache/records")
            #expect(names.count == Self.count + 1)
            #expect(store.entryCount == names.count)
            let allocated = try names.reduce(0) {
                try $0 + SystemFiles().status(at: mount.path + "/cache/records/" + $1).allocated
            }
            #expect(store.usage == allocated)
        }

        private func remounted(_ kind: ScratchMount.Kind) throws {
            let mount = try ScratchMount(kind)
            let log = EventLog()
            let store = open(mount, log)
            fill(store)
            // The system refuses while a file is open for writing, as the owner's lock is.
            store.maintenance.pause()
            store.withIO { _ in store.giveUpLock() }
            try mount.remount("ro")
            store.maintenance.resume()
            store.maintenance.schedule(after: 0)
            expectReadable(mount, store, log)
            try mount.remount("rw")
            try expectWorking(mount, store)
            store.close()
        }

        @Test(
            "ext4 remounted read-only: hits go on, stores are dropped, nothing is lost, works again",
            .enabled(if: ScratchMount.hasExt4, "needs root, loop devices and mkfs.ext4"))
        func ext4() throws {
            try remounted(.ext4)
        }

        @Test(
            "A tmpfs remounted read-only: hits go on, stores are dropped, nothing is lost, works again",
            .enabled(if: ScratchMount.hasTmpfs, "needs root"))
        func tmpfs() throws {
            try remounted(.tmpfs)
        }

        @Test(
            "ext4 that the system made read-only under the owner: nothing is lost",
            .enabled(if: ScratchMount.canBreakDown, "needs root, loop devices, mkfs.ext4 and trigger_fs_error"))
        func brokenDown() throws {
            let mount = try ScratchMount(.ext4)
            let log = EventLog()
            var store = open(mount, log)
            fill(store)
            #expect(store.isOwner)
            // What is not on the disk yet the system itself may lose: that is the power loss of other tests.
            sync()
            try mount.breakDown()
            expectReadable(mount, store, log)
            store.close()
            try mount.repair()
            store = open(mount, log)
            store.flush()
            try expectWorking(mount, store)
            store.close()
        }
    }
#endif
