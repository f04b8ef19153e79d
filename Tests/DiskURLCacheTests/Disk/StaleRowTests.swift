#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// What a disk layer knows of a record that another cache changed in its place.
    @Suite(.fewAtATime) struct StaleRowTests {
        private let scratch: ScratchDirectory
        private var directory: String { scratch.url.path + "/c" }

        init() throws { scratch = try ScratchDirectory() }

        /// The first one owns the directory.
        private func twoStores(_ files: FaultyFileSystem) -> (owner: DiskStore, guest: DiskStore) {
            let configuration = DiskConfiguration(directory: directory, capacity: 64 << 20)
            let owner = DiskStore(configuration: configuration, fileSystem: files)
            owner.flush()
            let guest = DiskStore(configuration: configuration)
            guest.flush()
            #expect(owner.isOwner && !guest.isOwner)
            return (owner, guest)
        }

        private static let key = RequestKey(
            text: "https://example.com/a", uri: "https://example.com/a", isForHead: false)

        /// The owner counts who is writing a key: what one guest announced once, it ends once, also if the record has
        /// to be written anew.
        @Test func aRewrittenUpdateIsToldOnce() throws {
            let (owner, guest) = twoStores(FaultyFileSystem())
            // Otherwise the guest would be alone, and the file gone.
            defer { withExtendedLifetime(owner) {} }
            var entry = StoredEntry.test(testBody(1))
            guest.store(entry, for: Self.key)
            var slots: Set<String> = []
            for number in 2..<8 {
                var metadata = entry.metadata
                metadata.sequence = UInt64(number)
                metadata.userInfo = ["x": .string(String(repeating: "x", count: 30_000))]
                #expect(guest.update(metadata, of: Self.key, replacing: entry.metadata, usedAt: 0))
                entry = StoredEntry(metadata: metadata, body: entry.body)
                slots.formUnion(try FileManager.default.contentsOfDirectory(atPath: directory + "/records"))
            }
            #expect(slots.count > 1, "it was written anew")
            let bytes = try Data(contentsOf: URL(fileURLWithPath: directory + "/changes"))
            let changes = stride(from: 0, to: bytes.count, by: DirectoryChange.rowLength).compactMap { start in
                bytes[start..<start + DirectoryChange.rowLength].withUnsafeBytes { DirectoryChange.decode($0)?.change }
            }
            #expect(changes.count { $0 == .storing(Self.key.name) } == 7)
            #expect(changes.count { $0 == .stored(Self.key.name) } == 7)
        }

        /// The slot has a record again, and it is a different one.
        @Test func whatReplacesARecordThatARemovalHasReadIsKept() {
            let files = FaultyFileSystem()
            let store = DiskStore(
                configuration: DiskConfiguration(directory: directory, capacity: 64 << 20), fileSystem: files)
            store.store(.test(testBody(1), sequence: 1, tags: ["t"]), for: Self.key)
            store.flush()
            let before = store.recordNames()
            let isArmed = Mutex(true)
            files.rule = { call in
                guard call.operation == .close, call.isRecord, isArmed.disarm() else { return nil }
                // The second one has the slot of the record that was read.
                for number in 2...3 {
                    store.store(.test(testBody(number), sequence: UInt64(number)), for: Self.key)
                }
                return nil
            }
            store.remove(matching: EntryCriteria(tags: ["t"]))
            #expect(!isArmed.withLock { $0 })
            #expect(store.recordNames() == before)
            #expect(store.body(Self.key) == testBody(3))
        }

        /// An examination leaves out a slot into which its cache is writing.
        @Test func aGuestsRecordInASlotThatTheOwnerLostIsKnown() {
            let files = FaultyFileSystem()
            let (owner, guest) = twoStores(files)
            let isArmed = Mutex(true)
            files.rule = { call in
                // The record is whole, but has no row yet.
                guard call.operation == .close, call.isRecord, isArmed.disarm() else { return nil }
                guest.remove(Self.key)
                guest.store(.test(testBody(2), sequence: 2), for: Self.key)
                owner.flush()
                return nil
            }
            owner.store(.test(testBody(1), sequence: 1), for: Self.key)
            #expect(!isArmed.withLock { $0 })
            owner.flush()
            #expect(owner.entryCount == 1)
            #expect(owner.body(Self.key) == testBody(2))
        }

        /// The rows of a key may lack a record until its files are read.
        @Test func aKeyIsUncertainWhileItsFilesAreRead() {
            let files = FaultyFileSystem()
            let (owner, guest) = twoStores(files)
            guest.store(.test(testBody(1), sequence: 1), for: Self.key)
            let name = Self.key.name
            let answers = Mutex<[Bool]>([])
            files.rule = { call in
                if call.operation == .open, call.isRecord {
                    let isExact = owner.catalog.plan(name, now: Date(), isUse: false).isExact
                    answers.withLock { $0 += [owner.mayContain(Self.key), !isExact] }
                }
                return nil
            }
            owner.flush()
            files.rule = { _ in nil }
            // Each slot is looked at.
            #expect(answers.withLock { Set($0) } == [true])
            #expect(owner.catalog.exactRows(of: name)?.count == 1)
        }

        @Test func theOwnerLearnsWhatAGuestRemovedAsDamaged() throws {
            let configuration = DiskConfiguration(directory: directory, capacity: 64 << 20)
            let owner = DiskStore(configuration: configuration)
            owner.flush()
            let guest = DiskStore(configuration: configuration)
            guest.flush()
            owner.store(.test(testBody(1), sequence: 1), for: Self.key)
            owner.flush()
            let name = try #require(owner.recordNames().first)
            let path = directory + "/records/" + name.text
            let file = try #require(FileHandle(forUpdatingAtPath: path))
            try file.write(contentsOf: Data("damaged".utf8))
            try file.close()
            #expect(guest.body(Self.key) == nil)
            guest.flush()
            #expect(!FileManager.default.fileExists(atPath: path))
            owner.flush()
            #expect(owner.entryCount == 0)
        }

        /// The row changes while the removal is under way, and the entry was there before.
        @Test func whatIsTakenInDuringARemovalIsRemoved() throws {
            let files = FaultyFileSystem()
            let during = Mutex<(@Sendable () -> Void)?>(nil)
            let remover = DiskStore(
                configuration: DiskConfiguration(directory: directory, capacity: 64 << 20), fileSystem: files,
                report: { event in
                    guard case .cannotDelete = event else { return }
                    during.withLock { action in
                        defer { action = nil }
                        return action
                    }?()
                })
            let stuck = RequestKey.test("stuck")
            let old = Date() - 1_000
            remover.store(.test(testBody(1), sequence: 1, storedAt: Date() - 10), for: stuck)
            remover.store(.test(testBody(2), sequence: 2, storedAt: old), for: Self.key)
            remover.flush()
            let other = DiskStore(configuration: DiskConfiguration(directory: directory, capacity: 64 << 20))
            other.flush()
            other.maintenance.pause()
            let metadata = StoredEntry.test(Data(), sequence: 3, storedAt: Date() - 10).metadata
            #expect(
                other.update(
                    metadata, of: Self.key, replacing: StoredEntry.test(Data(), sequence: 2).metadata,
                    usedAt: MonotonicTime.nanoseconds))
            during.withLock {
                $0 = {
                    other.flush()
                    remover.flush()
                }
            }
            let name = stuck.name.hex
            files.rule = { $0.operation == .unlink && $0.name.hasPrefix(name) ? .error(EBUSY) : nil }
            remover.remove(matching: EntryCriteria(storedAfter: Date() - 100))
            #expect(during.withLock { $0 == nil })
            #expect(remover.body(Self.key) == nil)
        }

        /// A store reads the files of a key anew just when a removal by tag is to do so.
        @Test func aRemovalWaitsForWhatAStoreIsReading() throws {
            let files = FaultyFileSystem()
            let (owner, guest) = twoStores(files)
            owner.maintenance.pause()
            guest.store(.test(testBody(1), sequence: 1, language: "en", tags: ["t"]), for: Self.key)
            owner.checkNow()
            let (looks, isFirst) = (Mutex(0), Mutex(true))
            let (isReading, isRemoved, isStored) = (
                DispatchSemaphore(value: 0), DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)
            )
            let remover = pthread_self()
            files.rule = { call in
                if pthread_equal(pthread_self(), remover) != 0 {
                    // The first is for the row that tells of the removal, the second when it looks for its records.
                    guard call.operation == .statusAt, call.name == "changes", looks.next() == 2 else { return nil }
                    Thread.detachNewThread {
                        owner.store(.test(testBody(2), sequence: 2, language: "de"), for: Self.key)
                        isStored.signal()
                    }
                    isReading.isSignalled("the store to read the files of the key")
                } else if call.operation == .open, call.isRecord, isFirst.disarm() {
                    isReading.signal()
                    // A removal that does not wait for this thread has the time to end here.
                    _ = isRemoved.wait(timeout: .now() + .milliseconds(500))
                }
                return nil
            }
            owner.remove(matching: EntryCriteria(tags: ["t"]))
            isRemoved.signal()
            isStored.isSignalled("the store")
            #expect(owner.variants(of: Self.key).map(\.metadata.sequence) == [2])
        }

        /// Another cache has put another variant into the slot of which the row tells.
        @Test func aStoreRemovesNoOtherVariant() throws {
            let files = FaultyFileSystem()
            let configuration = DiskConfiguration(directory: directory, capacity: 64 << 20)
            let owner = DiskStore(configuration: configuration, fileSystem: files)
            owner.flush()
            let key = Self.key
            let english = StoredEntry.test(testBody(1), sequence: 1, language: "en")
            owner.store(english, for: key)
            owner.flush()
            owner.maintenance.pause()
            let other = DiskStore(configuration: configuration)
            other.flush()
            other.remove(key, variant: english.metadata.varyKey)
            other.flush()
            other.store(.test(testBody(2), sequence: 2, language: "de"), for: key)
            other.flush()
            owner.store(.test(testBody(3), sequence: 3, language: "en"), for: key)
            owner.flush()
            for store in [owner, other] {
                let bodies = store.variants(of: key).compactMap { $0.load()?.body }
                #expect(Set(bodies) == [testBody(2), testBody(3)])
            }
        }

        /// Another cache has freshened what is too old by the row.
        @Test func whatWasFreshenedDoesNotExpire() throws {
            var configuration = DiskConfiguration(directory: directory, capacity: 64 << 20)
            configuration.maximumStorageAge = 100
            // For the second store, whose clock is not ahead, the record is not too old yet.
            let owner = DiskStore(configuration: configuration, clock: WallClock { Date() + 50 })
            owner.flush()
            owner.maintenance.pause()
            owner.store(.test(testBody(1), sequence: 1, storedAt: Date() - 70), for: Self.key)
            let other = DiskStore(configuration: configuration)
            other.maintenance.pause()
            other.flush()
            owner.maintenance.perform { #expect(owner.beginPass(isFlush: true)) }
            let metadata = StoredEntry.test(Data(), sequence: 2, storedAt: Date()).metadata
            #expect(
                other.update(
                    metadata, of: Self.key, replacing: StoredEntry.test(Data(), sequence: 1).metadata,
                    usedAt: MonotonicTime.nanoseconds))
            other.flush()
            owner.maintenance.perform { owner.endPass(isFlush: true) }
            for store in [owner, other] { #expect(store.body(Self.key) == testBody(1)) }
        }

        /// Another cache clears the folder, and stores in the new one, while a record is being written that fails then.
        @Test(arguments: [false, true]) func aFailedWriteRemovesNoOtherRecord(isLarge: Bool) throws {
            let files = FaultyFileSystem()
            let configuration = DiskConfiguration(directory: directory, capacity: 64 << 20)
            let store = DiskStore(configuration: configuration, fileSystem: files)
            store.flush()
            store.maintenance.pause()
            let other = DiskStore(configuration: configuration)
            other.flush()
            other.maintenance.pause()
            let isArmed = Mutex(true)
            files.rule = { call in
                let isHere =
                    isLarge
                    ? call.operation == .rename && call.name.hasPrefix("incoming-")
                    : call.operation == .write && call.isRecord
                guard isHere,
                    isArmed.disarm()
                else { return nil }
                other.removeAll()
                other.store(.test(testBody(2), sequence: 2), for: Self.key)
                other.flush()
                // The file that was arriving is gone.
                return isLarge ? nil : .error(ENOSPC)
            }
            let entry = StoredEntry.test(testBody(1), sequence: 1)
            if isLarge {
                let body = try store.beginIncoming()
                try body.append(testBody(1))
                _ = store.adopt(body, entry.metadata, for: Self.key, usedAt: MonotonicTime.nanoseconds)
                body.discard()
            } else {
                store.store(entry, for: Self.key)
            }
            #expect(!isArmed.withLock { $0 })
            #expect(other.body(Self.key) == testBody(2))
            store.flush()
            #expect(store.body(Self.key) == testBody(2))
        }
    }
#endif
