import Foundation
import Testing

@testable import DiskURLCache

/// Faults of `Reliability.md` about an index that is not as it was written: it is a hint, and is made again from the
/// files.
@Suite("Damaged index", .fewAtATime) struct IndexDamageTests {
    private static let count = 20

    /// A closed directory with some records and an index.
    private func fixture(_ label: String = #function) throws -> DiskFixture {
        let fixture = try DiskFixture(label)
        let store = fixture.open()
        for number in 0..<Self.count { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.close()
        return fixture
    }

    private func index(_ fixture: DiskFixture) -> URL { URL(fileURLWithPath: fixture.directory + "/index.plist") }

    /// Every record is served, before and after the index is known, and usage is exact.
    private func expectWhole(
        _ fixture: DiskFixture, _ comment: Comment, isRejected: Bool = true, files: any FileSystem = SystemFiles()
    ) {
        let before = fixture.log.count { $0 == .rejectedIndex }
        let store = fixture.open(files: files)
        for number in 0..<Self.count {
            if store.body(.test("\(number)")) != testBody(number) { Issue.record("\(number) is lost: \(comment)") }
        }
        store.flush()
        for number in 0..<Self.count {
            if store.body(.test("\(number)")) != testBody(number) {
                Issue.record("\(number) is lost later: \(comment)")
            }
        }
        #expect(store.usage == fixture.allocatedByRecords(), comment)
        #expect(store.entryCount == Self.count, comment)
        store.close()
        let after = fixture.log.count { $0 == .rejectedIndex }
        #expect((after > before) == isRejected, comment)
    }

    @Test("Index empty, missing, of a future version, XML, garbage: rebuilt") func replaced() throws {
        let fixture = try fixture()
        let good = try Data(contentsOf: index(fixture))
        var future = good
        // The version is the last byte of the first integer.
        let version = try #require(future.range(of: Data([0x13, 0, 0, 0, 0, 0, 0, 0, 3])))
        future[version.upperBound - 1] = 4
        let xml = try PropertyListSerialization.data(fromPropertyList: ["version": 1], format: .xml, options: 0)
        let other = try PropertyListSerialization.data(fromPropertyList: ["version": 1], format: .binary, options: 0)
        let damages = [
            Data(), future, xml, other, testBody(1, length: 5000), Data(count: good.count), good + Data([0]),
            good.dropLast(),
        ]
        for (number, bytes) in damages.enumerated() {
            try bytes.write(to: index(fixture))
            expectWhole(fixture, "damage \(number)")
        }
        try FileManager.default.removeItem(at: index(fixture))
        expectWhole(fixture, "missing", isRejected: false)
        expectWhole(fixture, "and good again", isRejected: false)
    }

    @Test("Every single-bit flip of the index: rejected") func everyBitFlip() throws {
        let fixture = try fixture()
        let store = fixture.open()
        store.flush()
        store.close()
        let good = try Data(contentsOf: index(fixture))
        #expect(decode(good) != nil)
        for position in good.indices {
            for bit in TestLength.bits(at: position) {
                var flipped = good
                flipped[position] ^= 1 << UInt8(bit)
                if decode(flipped) != nil {
                    Issue.record("bit \(bit) of byte \(position) goes unnoticed")
                    return
                }
            }
        }
        // A few of them through the whole store.
        for position in stride(from: 0, to: good.count, by: good.count / 12) {
            var flipped = good
            flipped[position] ^= 16
            try flipped.write(to: index(fixture))
            expectWhole(fixture, "byte \(position)")
        }
    }

    private func decode(_ bytes: Data) -> DiskIndex? {
        var bytes = Array(bytes)
        return bytes.withUnsafeMutableBytes { IndexFile.decode($0)?.index }
    }

    @Test("Rows whose files are gone go, and usage is right") func filesGone() throws {
        let fixture = try fixture()
        for name in fixture.recordNames().prefix(7) {
            try FileManager.default.removeItem(atPath: fixture.records + "/" + name)
        }
        let store = fixture.open()
        store.flush()
        #expect(store.entryCount == Self.count - 7)
        #expect(store.usage == fixture.allocatedByRecords())
        // And when they go while the store is open.
        for name in fixture.recordNames().prefix(5) {
            try FileManager.default.removeItem(atPath: fixture.records + "/" + name)
        }
        for number in 0..<Self.count { _ = store.variants(of: .test("\(number)")) }
        store.flush()
        #expect(store.entryCount == Self.count - 12)
        #expect(store.usage == fixture.allocatedByRecords())
        for number in 0..<Self.count { store.remove(.test("\(number)")) }
        #expect(store.usage == 0)
    }

    @Test("Files that the index lacks are served, and counted", arguments: [5, 700])
    func filesUnknown(count: Int) throws {
        let fixture = try fixture()
        let saved = try Data(contentsOf: index(fixture))
        var store = fixture.open()
        for number in 0..<count { store.store(.test(testBody(number), tags: ["t"]), for: .test("new \(number)")) }
        store.close()
        try saved.write(to: index(fixture))
        store = fixture.open()
        #expect(store.body(.test("new 1")) == testBody(1))
        store.flush()
        for number in 0..<count { #expect(store.contains(.test("new \(number)"))) }
        #expect(store.entryCount == Self.count + count)
        #expect(store.usage == fixture.allocatedByRecords())
        // Their headers are read when they are asked for.
        store.remove(matching: EntryCriteria(tags: ["t"]))
        #expect(store.entryCount == Self.count)
        #expect(fixture.recordNames().count == Self.count)
    }

    /// Hundreds of unknown files are taken in by name and size alone, and saved like that.
    private func takeInByNameAlone(_ fixture: DiskFixture) throws {
        try FileManager.default.removeItem(at: index(fixture))
        let store = fixture.open()
        store.flush()
        store.close()
    }

    /// A row that knows name and size alone does not know the variant of its record.
    @Test func variantsOfRowsThatWereTakenInByNameAlone() throws {
        let fixture = try DiskFixture()
        var store = fixture.open()
        for number in 0..<600 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        let variants = ["de", "en"].enumerated().map {
            StoredEntry.test(testBody($0.offset), sequence: UInt64($0.offset), language: $0.element)
        }
        for name in ["removed", "replaced", "updated"] {
            for variant in variants { store.store(variant, for: .test(name)) }
        }
        store.close()
        try takeInByNameAlone(fixture)
        store = fixture.open()
        store.flush()
        store.remove(.test("removed"), variant: variants[0].metadata.varyKey)
        #expect(store.variants(of: .test("removed")).map(\.metadata.varyKey) == [variants[1].metadata.varyKey])
        store.store(.test(testBody(9), sequence: 9, language: "de"), for: .test("replaced"))
        #expect(store.variants(of: .test("replaced")).count == 2)
        let updated = try #require(store.variants(of: .test("updated")).first).metadata
        var changed = updated
        changed.sequence = 99
        #expect(store.update(changed, of: .test("updated"), replacing: updated, usedAt: 1))
        #expect(store.variants(of: .test("updated")).map(\.metadata.sequence).contains(99))
        store.flush()
        #expect(fixture.recordNames().count == 600 + 5)
        #expect(store.usage == fixture.allocatedByRecords())
    }

    /// A removal reads the headers of its key; the rows that it makes anew were not there when their names were listed.
    @Test("A removal during the listing does not lose the other variants of its key")
    func removalDuringListing() throws {
        let fixture = try DiskFixture()
        var store = fixture.open()
        for number in 0..<300 {
            for (sequence, language) in ["de", "en"].enumerated() {
                store.store(
                    .test(testBody(number), sequence: UInt64(sequence), language: language), for: .test("\(number)"))
            }
        }
        store.close()
        try takeInByNameAlone(fixture)
        let files = FaultyFileSystem()
        let keys = Dictionary(uniqueKeysWithValues: (0..<300).map { (RequestKey.test("\($0)").name.hex, $0) })
        let listed = Mutex<[String: Int]>([:])
        let removed = Mutex<Int?>(nil)
        let opened = WeakReference<DiskStore>()
        let isOpened = DispatchSemaphore(value: 0)
        files.onListed = { name in
            let whole = listed.withLock { listed -> String? in
                if name.utf8.count == RecordName.length { listed[String(name.dropLast()), default: 0] += 1 }
                // In the midst of the listing, a key whose variants both are listed:
                guard listed.values.reduce(0, +) == 256 else { return nil }
                return listed.first { $0.value == 2 }?.key
            }
            guard let number = whole.flatMap({ keys[$0] }) else { return }
            isOpened.isSignalled("the store to open")
            let variant = StoredEntry.test(Data(), language: "en").metadata.varyKey
            opened.object?.remove(.test("\(number)"), variant: variant)
            removed.withLock { $0 = number }
        }
        store = fixture.open(files: files)
        opened.object = store
        isOpened.signal()
        store.flush()
        let number = try #require(removed.withLock { $0 })
        files.onListed = { _ in }
        #expect(store.variants(of: .test("\(number)")).map(\.metadata.sequence) == [0])
        #expect(store.entryCount == 599)
        #expect(store.usage == fixture.allocatedByRecords())
    }

    /// The listing has its names; then a record is replaced, one is added, and one is removed.
    @Test("Rows that are made anew after the listing are those of the files")
    func rowsMadeAnewAfterTheListing() throws {
        let fixture = try DiskFixture()
        var store = fixture.open()
        for number in 0..<600 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.close()
        try takeInByNameAlone(fixture)
        let files = FaultyFileSystem()
        let opened = WeakReference<DiskStore>()
        let isOpened = DispatchSemaphore(value: 0)
        let listed = Mutex(0)
        files.onListed = { _ in
            let isLast = listed.withLock { listed in
                listed += 1
                return listed == 600
            }
            guard isLast else { return }
            isOpened.isSignalled("the store to open")
            opened.object?.store(.test(testBody(1007), sequence: 2), for: .test("7"))
            opened.object?.store(.test(testBody(600)), for: .test("600"))
            opened.object?.remove(.test("8"))
        }
        store = fixture.open(files: files)
        opened.object = store
        isOpened.signal()
        store.flush()
        files.onListed = { _ in }
        #expect(listed.withLock { $0 } >= 600)
        // The index is complete: it says no by itself.
        #expect(!store.mayContain(.test("none")))
        #expect(store.body(.test("7")) == testBody(1007))
        #expect(store.body(.test("600")) == testBody(600))
        #expect(store.body(.test("8")) == nil)
        #expect(store.entryCount == 600)
        #expect(store.usage == fixture.allocatedByRecords())
    }

    @Test("An index with hostile numbers, checksum right: no trap, usage exact")
    func hostileNumbers() throws {
        let fixture = try fixture()
        let store = fixture.open()
        store.flush()
        store.close()
        var index = DiskIndex()
        for number in 0..<Self.count {
            var row = IndexRow.test(
                .test("\(number)"), slot: UInt8(number % 8), allocated: .max, accessedAt: .max)
            row.storedAt = number % 2 == 0 ? .max : 0
            row.blocks = .max
            row.flags = .pinned
            index.append(row)
            index.append(.test(.test("gone \(number)"), allocated: .max))
        }
        try Data(IndexFile.encode(index)).write(to: self.index(fixture))
        let reopened = fixture.open()
        reopened.flush()
        for number in 0..<Self.count {
            _ = reopened.variants(of: .test("\(number)"))
            _ = reopened.variants(of: .test("gone \(number)"))
        }
        reopened.flush()
        for number in 0..<Self.count { #expect(reopened.body(.test("\(number)")) == testBody(number)) }
        reopened.flush()
        #expect(reopened.usage == fixture.allocatedByRecords())
    }

    @Test("Wrong lengths, huge sizes, slots out of range: rejected")
    func hostileNumbersOfTheFile() throws {
        var index = DiskIndex()
        index.append(.test(.test("a"), slot: 7, accessedAt: 1))
        let good = Data(IndexFile.encode(index))
        let layout = IndexFileLayout(count: 1)
        func resummed(_ change: (inout Data) -> Void) -> Data {
            var bytes = good
            change(&bytes)
            bytes.replaceSubrange(layout.checksumOffset..<layout.checksumOffset + 8, with: Data(count: 8))
            let sum = bytes.withUnsafeBytes { Checksum.of($0) }
            withUnsafeBytes(of: sum.littleEndian) {
                bytes.replaceSubrange(layout.checksumOffset..<layout.checksumOffset + 8, with: $0)
            }
            return bytes
        }
        #expect(decode(resummed { _ in }) != nil)
        // The slot, the highest byte of the size, and a size that is not in blocks.
        #expect(decode(resummed { $0[layout.timesOffset - 2] = 8 }) == nil)
        #expect(decode(resummed { $0[layout.sizesOffset + 1] = 0xFF }) == nil)
        #expect(decode(resummed { $0[layout.sizesOffset + 8] ^= 1 }) == nil)
        // The count, the length of the rows and of an array, an offset, the trailer.
        let offsets = [
            layout.checksumOffset - 2, layout.rowsOffset - 1, layout.checksumOffset + 8 + 5,
            layout.sizesOffset + IndexFileLayout.sizeLength + 3, layout.length - 10, layout.length - 25,
        ]
        for offset in offsets { #expect(decode(resummed { $0[offset] ^= 0xFF }) == nil) }
        #expect(decode(resummed { $0.insert(0, at: layout.rowsOffset) }) == nil)
    }

    @Test("Rows with hostile slots and sizes, checksum right: the index is made anew")
    func hostileRows() throws {
        let fixture = try fixture()
        let good = try #require(decode(Data(contentsOf: index(fixture))))
        for (slot, blocks) in [(8, 8), (79, 8), (80, 8), (255, 8), (0, UInt32.max)] {
            var row = IndexRow.test(.test("1"), slot: UInt8(slot), allocated: 0, accessedAt: 1)
            row.blocks = blocks
            for rows in [[row], Array(good.inOrder) + [row], [row] + Array(good.inOrder)] {
                try Data(IndexFile.encode(rows)).write(to: index(fixture))
                expectWhole(fixture, "slot \(slot), \(blocks) blocks")
            }
        }
        // A name twice: one row of it counts.
        let rows = Array(good.inOrder)
        try Data(IndexFile.encode(rows + rows)).write(to: index(fixture))
        expectWhole(fixture, "each row twice", isRejected: false)
    }

    @Test("Plist bombs and a 10 GB sparse index: bounded, rebuilt") func bombs() throws {
        let fixture = try fixture()
        // Arrays that refer to themselves ten times over, a dictionary of 2^64 pairs, and XML 100,000 deep.
        var bomb = Data("bplist00".utf8)
        var offsets: [UInt8] = []
        for level in 0..<40 {
            offsets.append(UInt8(truncatingIfNeeded: bomb.count))
            bomb.append(0xAA)
            bomb.append(contentsOf: [UInt8](repeating: UInt8(min(level + 1, 39)), count: 10))
        }
        let table = bomb.count
        bomb.append(contentsOf: offsets)
        bomb.append(contentsOf: [0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0, 0])
        withUnsafeBytes(of: UInt64(table).bigEndian) { bomb.append(contentsOf: $0) }
        var huge = Data("bplist00".utf8) + Data([0xDF, 0x13]) + Data(repeating: 0xFF, count: 8)
        huge += Data(count: 100)
        let deep = Data((String(repeating: "<array>", count: 100_000)).utf8)
        let files = FaultyFileSystem()
        /// As `expectWhole`, and no more was read of a file, and no more asked for at once, than so many bytes.
        func expectBounded(_ name: String, _ bytes: Int, _ comment: Comment) {
            _ = files.takeReadings()
            expectWhole(fixture, comment, isRejected: name == "index.plist", files: files)
            let reading = files.takeReadings()[name]
            // A file of another length than any index is rejected unread.
            #expect((reading?.bytes ?? 0) <= bytes, comment)
            #expect((reading?.largestBuffer ?? 0) <= bytes, comment)
        }
        for (number, bytes) in [bomb, huge, deep].enumerated() {
            try bytes.write(to: index(fixture))
            expectBounded("index.plist", 512, "bomb \(number)")
        }
        func grow(_ file: URL, to length: Int) throws {
            let handle = try FileHandle(forWritingTo: file)
            try handle.truncate(atOffset: UInt64(length))
            try handle.close()
        }
        for length in [10 << 30, IndexFileLayout(count: 1 << 20).length] {
            try grow(index(fixture), to: length)
            expectBounded("index.plist", 512, "\(length) bytes")
        }
        // The first bytes are those of an index of so many rows; the rest is missing.
        for count in [IndexFileLayout.maximumCount + 1, 100 << 20, 1 << 40] {
            let layout = IndexFileLayout(count: 0)
            var bytes = Data(layout.start)
            let counted = try #require(bytes.range(of: Data([0x13] + [UInt8](repeating: 0, count: 8))))
            withUnsafeBytes(of: UInt64(count).bigEndian) {
                bytes.replaceSubrange(counted.lowerBound + 1..<counted.upperBound, with: $0)
            }
            try bytes.write(to: index(fixture))
            try grow(index(fixture), to: layout.length + IndexFileLayout.rowLength * min(count, 100 << 20))
            expectBounded("index.plist", 512, "\(count) rows")
        }
        // What may be an index is read whole, once.
        let layout = IndexFileLayout(count: 1 << 16)
        try Data(layout.start).write(to: index(fixture))
        try grow(index(fixture), to: layout.length)
        expectBounded("index.plist", layout.length + 512, "zeros for rows")
    }

    @Test func indexIsABinaryPropertyList() throws {
        let fixture = try fixture()
        try FileManager.default.removeItem(at: index(fixture))
        let store = fixture.open()
        store.flush()
        store.close()
        let bytes = try Data(contentsOf: index(fixture))
        let list = try #require(
            PropertyListSerialization.propertyList(from: bytes, format: nil) as? [String: Any])
        #expect(list["version"] as? Int == 3)
        #expect(list["count"] as? Int == Self.count)
        #expect(list.count == 6)
        let rows = try #require(list["rows"] as? Data)
        #expect(rows.count == Self.count * IndexFileLayout.packedLength)
        func number(_ offset: Int) -> UInt64 {
            rows.dropFirst(offset).prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        let names = Set(fixture.recordNames().map { String($0.prefix(KeyName.length)) })
        let listed = (0..<Self.count).map { row in
            let offset = row * IndexFileLayout.packedLength
            return KeyName(resource: number(offset), low: number(offset + 8)).hex
        }
        #expect(Set(listed) == names)
        #expect((list["sizes"] as? [Int])?.reduce(0, +) == fixture.allocatedByRecords())
    }

    #if os(Linux) || os(macOS)
        /// What a tool prints; nil if it fails, or if there is none.
        private static func run(_ command: [String]) throws -> String? {
            let process = Process()
            let output = Pipe()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
            process.arguments = command
            process.standardOutput = output
            process.standardError = FileHandle.nullDevice
            try process.run()
            let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
            process.waitUntilExit(of: command[0])
            return process.terminationStatus == 0 ? text : nil
        }

        /// When each entry was used, and how large it is.
        @Test(arguments: [0, 1, 300]) func everyToolForPropertyListsReadsTimesAndSizes(_ count: Int) throws {
            let fixture = try DiskFixture()
            let rows = (0..<count).map { number in
                IndexRow.test(
                    .test("\(number)"), allocated: number * 512, accessedAt: 1_790_000_000 + UInt32(number))
            }
            let path = fixture.directory + "/index.plist"
            try FileManager.default.createDirectory(atPath: fixture.directory, withIntermediateDirectories: true)
            try Data(IndexFile.encode(rows)).write(to: URL(fileURLWithPath: path))
            let program = """
                import plistlib, sys
                index = plistlib.load(open(sys.argv[1], "rb"))
                print(index["count"], index["accessTimes"], index["sizes"], len(index["rows"]))
                """
            let times = rows.map { Int($0.accessedAt) }
            let sizes = rows.map { Int($0.blocks) * 512 }
            let read = try #require(try Self.run(["python3", "-c", program, path]))
            #expect(read == "\(count) \(times) \(sizes) \(count * IndexFileLayout.packedLength)\n")
            // Not on each system.
            guard try Self.run(["plutil", "-help"]) != nil else { return }
            let printed = try #require(try Self.run(["plutil", "-p", path]))
            #expect(printed.contains("accessTimes") && printed.contains("sizes"))
            if let last = times.last, let size = sizes.last {
                #expect(printed.contains("\(last)") && printed.contains("\(size)"))
            }
        }
    #endif
}
