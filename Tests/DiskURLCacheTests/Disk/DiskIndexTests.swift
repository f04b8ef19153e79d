import Foundation
import Testing

@testable import DiskURLCache

@Suite("Disk index", .fewAtATime) struct DiskIndexTests {
    private func key(_ number: Int) -> KeyName {
        // Few different hashes, so that keys meet in the table.
        KeyName(resource: UInt64(number), low: UInt64(number % 7))
    }

    private func row(_ number: Int, slot: UInt8 = 0, bytes: Int = 4096) -> IndexRow {
        IndexRow(RecordName(key: key(number), slot: slot), allocated: bytes, accessedAt: 0)
    }

    private func list(_ index: DiskIndex) -> [IndexRow] {
        Array(index.inOrder)
    }

    /// The seeds of names are known, so a server can choose URLs whose words have equal bits at one end.
    @Test(arguments: [0xff_ffff, 0xff_ffff << 40]) func wordsThatAreAlikeHaveManyPlaces(equalBits: UInt64) {
        var random = TestRandom(2)
        let words = (0..<1_000).map { _ in UInt64.random(in: .min ... .max, using: &random) & ~equalBits }
        let places = Set(words.map { TableSeed.ofProcess.hash($0) & 0xf_ffff })
        #expect(places.count > 900)
    }

    @Test func agreesWithASimpleModel() {
        var index = DiskIndex()
        /// In the order of use, the least recent first.
        var model: [(name: RecordName, bytes: Int, time: UInt64)] = []
        var random = TestRandom(1)
        func place(_ name: RecordName, _ bytes: Int, _ time: UInt64) {
            model.removeAll { $0.name == name }
            let end = model.lastIndex { $0.time <= time } ?? -1
            model.insert((name, bytes, time), at: end + 1)
        }
        for step in 1..<TestLength.pick(plain: 6_000, long: 60_000) {
            let number = Int.random(in: 0..<60, using: &random)
            let row = row(number, slot: UInt8(step % 3), bytes: Int.random(in: 0..<100_000, using: &random))
            // No two uses at one time.
            let now = UInt64(step + 100) * 10
            let earlier = now - UInt64.random(in: 0..<400, using: &random) / 10 * 10 + 5
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<3:
                index.put(row, usedAt: now)
                place(row.name, row.bytes, max(now, model.first { $0.name == row.name }?.time ?? 0))
            case 3:
                index.put(row, usedAt: earlier)
                place(row.name, row.bytes, max(earlier, model.first { $0.name == row.name }?.time ?? 0))
            case 4..<6:
                let wasThere = model.contains { $0.name == row.name }
                #expect((index.remove(row.name) != nil) == wasThere)
                model.removeAll { $0.name == row.name }
            case 6:
                let uses = (0..<5).map { use in
                    IndexUse(key: key((number + use) % 60), time: earlier + UInt64(use), seconds: 7)
                }
                index.note(uses)
                for use in uses {
                    // A use is one of all slots of its key.
                    for known in model where known.name.key == use.key && known.time < use.time {
                        place(known.name, known.bytes, use.time)
                    }
                }
            default:
                index.note([IndexUse(key: row.key, time: now, seconds: 0)])
                for known in model where known.name.key == row.key && known.time < now {
                    place(known.name, known.bytes, now)
                }
            }
            guard step % 50 == 0 else { continue }
            let listed = list(index)
            // Slots of one key may be used in any order.
            #expect(Set(listed.map(\.name)) == Set(model.map(\.name)))
            #expect(listed.map(\.key) == model.map(\.name.key))
            #expect(index.count == model.count)
            #expect(index.bytes == model.reduce(0) { $0 + $1.bytes })
            for known in model { #expect(index.row(known.name)?.bytes == known.bytes) }
            for known in Set(model.map(\.name.key.resource)) {
                let expected = Set(model.map(\.name).filter { $0.key.resource == known })
                #expect(Set(index.rows(ofResource: known).map(\.name)) == expected)
            }
        }
    }

    /// Queries of one endpoint, the users of one URL and all spellings of a path share a resource.
    @Test func manyRowsOfOneResourceCostNoMoreThanOthers() {
        func time(_ resource: (UInt64) -> UInt64) -> Double {
            let keys = (0..<UInt64(8_000)).map { KeyName(resource: resource($0), low: $0 &* 0x9E37_79B9_7F4A_7C15) }
            let start = Self.threadTime
            var index = DiskIndex()
            for key in keys {
                index.put(IndexRow(RecordName(key: key, slot: 0), allocated: 4_096, accessedAt: 0), usedAt: 0)
            }
            for key in keys { index.remove(RecordName(key: key, slot: 0)) }
            #expect(index.count == 0)
            return Self.threadTime - start
        }
        let others = time { $0 &* 0x9E37_79B9_7F4A_7C15 }
        // One after the other in the table they took fifty times as long.
        #expect(time { _ in 7 } < 10 * others)
    }

    /// The time that the processor has spent on this thread, in seconds.
    private static var threadTime: Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
    }

    @Test func unknownRowsEnterByTheirTime() {
        var index = DiskIndex()
        func row(_ number: Int, at seconds: UInt32) -> IndexRow {
            IndexRow(RecordName(key: key(number), slot: 0), allocated: 0, accessedAt: seconds)
        }
        for number in 0..<10 { index.append(row(number, at: UInt32(number) * 10)) }
        index.put(row(10, at: 35))
        index.putUnknown([row(11, at: 1), row(3, at: 2), row(12, at: 35), row(13, at: 500)])
        #expect(list(index).map(\.key.resource) == [0, 11, 1, 2, 3, 10, 12, 4, 5, 6, 7, 8, 9, 13])
        // What was used in this process stays above all that was not.
        index.note([IndexUse(key: key(0), time: 5, seconds: 3)])
        index.put(row(14, at: 2))
        #expect(list(index).map(\.key.resource) == [11, 14, 1, 2, 3, 10, 12, 4, 5, 6, 7, 8, 9, 13, 0])
        #expect(zip(list(index), list(index).dropFirst()).allSatisfy { $0.lastUse <= $1.lastUse })
    }

    @Test func fileKeepsEverythingAndTheOrder() throws {
        var index = DiskIndex()
        for number in 0..<100 {
            var row = row(number, slot: UInt8(number % 8), bytes: number * 512)
            row.hostHash = 1 << 31 + UInt32(number)
            row.tagFilter = TagFilter(["\(number)"])
            row.varyHash = .max - UInt32(number)
            row.storedAt = UInt32(number) * 3
            row.flags = number % 2 == 0 ? .pinned : .partial
            index.append(row)
        }
        var bytes = IndexFile.encode(index)
        let decoded = try #require(bytes.withUnsafeMutableBytes { IndexFile.decode($0) })
        #expect(list(decoded.index) == list(index))
        #expect(decoded.index.bytes == index.bytes)
        #expect(decoded.index.pinnedBytes == index.pinnedBytes)
        var empty = IndexFile.encode(DiskIndex())
        #expect(empty.withUnsafeMutableBytes { IndexFile.decode($0) }?.index.count == 0)
    }

    @Test func policySparesPinnedRowsWithinTheirShare() {
        var index = DiskIndex()
        for number in 0..<10 {
            var row = row(number)
            if number < 4 { row.flags = .pinned }
            index.append(row)
        }
        func victims(_ limit: Int, _ excess: Int) -> [Int] {
            EvictionPolicy(pinnedLimit: limit).victims(in: index, freeing: excess).map { Int($0.key.resource) }
        }
        #expect(victims(4 * 4096, 1) == [4])
        #expect(victims(4 * 4096, 4096 * 2 + 1) == [4, 5, 6])
        #expect(victims(3 * 4096, 4096 * 2) == [0, 4])
        #expect(victims(0, 4096 * 2) == [0, 1])
        #expect(victims(0, 0) == [])
        for number in 4..<10 { index.remove(row(number).name) }
        #expect(victims(4 * 4096, 1) == [0])
    }

    @Test(arguments: [
        // Age, blocks, weight: the age times the logarithm of the blocks, without the part behind the point.
        (1, 8, 3), (7, 8, 21), (2, 16, 8), (2, 31, 8), (2, 32, 10), (10, 2_048, 110), (3, Int(UInt32.max), 93),
        // A record without blocks is not kept for ever.
        (5, 0, 5), (5, 1, 5), (5, 2, 5), (5, 4, 10),
    ])
    func aRecordWeighsItsAgeTimesTheLogarithmOfItsBlocks(age: Int, blocks: Int, weight: Int) {
        #expect(EvictionPolicy.weight(age: age, blocks: UInt32(blocks)) == weight)
    }

    @Test(arguments: [
        // Sizes in KB, the least recently used first; the bytes to free; the numbers of the victims in their order.
        ([4, 4, 4, 4], 1, [0]),
        ([4, 4, 4, 4], 8 << 10, [0, 1]),
        // Weights 4 · 3, 3 · 11, 2 · 3, 1 · 3.
        ([4, 1_024, 4, 4], 1, [1]),
        ([4, 1_024, 4, 4], (1_024 << 10) + 1, [1, 0]),
        // 4 · 3 against 1 · 11: a single use still saves the large one.
        ([4, 4, 4, 1_024], 1, [0]),
        // 8 · 3, 7 · 3, then 2 · 11 is between them.
        ([4, 4, 4, 4, 4, 4, 1_024, 4], 3 << 10, [0]),
        ([4, 4, 4, 4, 4, 4, 1_024, 4], 5 << 10, [0, 6]),
        ([], 1, []),
        ([4], 0, []),
    ])
    func victimsByWeight(sizes: [Int], excess: Int, victims: [Int]) {
        var index = DiskIndex()
        for (number, size) in sizes.enumerated() { index.append(row(number, bytes: size << 10)) }
        let chosen = EvictionPolicy(pinnedLimit: 0, weighsSize: true).victims(in: index, freeing: excess)
        #expect(chosen.map { Int($0.key.resource) } == victims)
    }

    /// In any index the victims are the heaviest rows, no more of them than needed, and of equal sizes the least
    /// recently used ones; where all rows have one size, weighing them changes nothing.
    @Test func victimsByWeightAreTheHeaviestAndNoMoreThanNeeded() {
        var random = TestRandom(38)
        for round in 0..<TestLength.pick(plain: 300, long: 3_000) {
            var index = DiskIndex()
            let isUniform = round % 10 == 0
            for number in 0..<Int.random(in: 1..<200, using: &random) {
                let bytes = isUniform ? 4_096 : 512 << Int.random(in: 0..<12, using: &random)
                index.put(row(number, bytes: bytes), usedAt: UInt64.random(in: 0..<300, using: &random))
            }
            let excess = Int.random(in: 1...index.bytes, using: &random)
            let rows = list(index)
            let victims = EvictionPolicy(pinnedLimit: 0, weighsSize: true).victims(in: index, freeing: excess)
            #expect(victims.reduce(0) { $0 + $1.bytes } >= excess)
            #expect(victims.dropLast().reduce(0) { $0 + $1.bytes } < excess)
            let weights = Dictionary(
                uniqueKeysWithValues: rows.enumerated().map { position, row in
                    (row.name, EvictionPolicy.weight(age: rows.count - position, blocks: row.blocks))
                })
            let chosen = victims.map { weights[$0.name] ?? 0 }
            #expect(zip(chosen, chosen.dropFirst()).allSatisfy { $0 >= $1 })
            let spared = Set(rows.map(\.name)).subtracting(victims.map(\.name))
            #expect(spared.allSatisfy { weights[$0] ?? 0 <= chosen.last ?? 0 })
            let positions = Dictionary(uniqueKeysWithValues: rows.enumerated().map { ($1.name, $0) })
            for (_, same) in Dictionary(grouping: victims, by: \.blocks) {
                let places = same.compactMap { positions[$0.name] }
                #expect(zip(places, places.dropFirst()).allSatisfy { $0 < $1 })
            }
            if isUniform {
                let byUse = EvictionPolicy(pinnedLimit: 0, batch: .max).victims(in: index, freeing: excess)
                #expect(victims == byUse)
            }
        }
    }

    @Test func weighingSparesPinnedRowsWithinTheirShare() {
        var index = DiskIndex()
        for number in 0..<6 {
            var row = row(number, bytes: number < 2 ? 1 << 20 : 4_096)
            if number < 2 { row.flags = .pinned }
            index.append(row)
        }
        func victims(_ limit: Int, _ excess: Int) -> [Int] {
            EvictionPolicy(pinnedLimit: limit, weighsSize: true).victims(in: index, freeing: excess).map {
                Int($0.key.resource)
            }
        }
        #expect(victims(2 << 20, 1) == [2])
        #expect(victims(1 << 20, 1) == [0])
        #expect(victims(1 << 20, (1 << 20) + 1) == [0, 2])
    }

    @Test func checksumSeesEveryBitAndEveryLength() {
        var sums: Set<UInt64> = []
        for length in 0..<600 { sums.insert([UInt8](repeating: 0, count: length).withUnsafeBytes { Checksum.of($0) }) }
        #expect(sums.count == 600)
        let bytes = [UInt8](testBody(1, length: 517))
        let sum = bytes.withUnsafeBytes { Checksum.of($0) }
        for place in bytes.indices {
            for bit in 0..<8 {
                var flipped = bytes
                flipped[place] ^= 1 << UInt8(bit)
                if flipped.withUnsafeBytes({ Checksum.of($0) }) == sum { Issue.record("\(place) \(bit)") }
            }
        }
        // In pieces, as a reader does.
        var checksum = Checksum()
        bytes.withUnsafeBytes { bytes in
            checksum.update(UnsafeRawBufferPointer(rebasing: bytes[..<256]))
            #expect(checksum.finish(UnsafeRawBufferPointer(rebasing: bytes[256...])) == sum)
        }
    }

    @Test func namesAreReadStrictly() {
        let key = RequestKey.test("a").name
        let name = RecordName(key: key, slot: 7)
        #expect(RecordName(key.hex + "7") == name)
        #expect(name.text == key.hex + "7")
        for text in [
            "", key.hex, key.hex + "8", key.hex + "/", key.hex + "00", "ABCDEF" + key.hex.dropFirst(6) + "0",
        ] {
            #expect(RecordName(text) == nil)
        }
        let path = DiskPaths(directory: "/a/b//").withRecord(RecordName(key: key, slot: 3)) { String(cString: $0) }
        #expect(path == "/a/b/records/" + key.hex + "3")
        #expect(DiskPaths.isName("trash-0123456789abcdef", of: .trash))
        #expect(!DiskPaths.isName("trash-0123456789abcdeX", of: .trash))
        #expect(!DiskPaths.isName("trash-", of: .trash))
    }

    /// The clock of a file system may be too coarse to tell a change in the moment of the saving from one before it.
    @Test func aRecordThatWasWrittenWhenTheIndexWasSavedIsReadAgain() throws {
        let fixture = try DiskFixture()
        let store = fixture.open()
        store.store(.test(testBody(1)), for: .test("a"))
        store.flush()
        let rows = Array(store.catalog.read { $0.inOrder })
        store.close()
        let paths = DiskPaths(directory: fixture.directory)
        let listing = try FolderListing(SystemFiles(), paths, owner: .process)
        let written = try #require(listing.records.first?.status.modified)
        for savedAt in [written, written + 1] {
            var index = DiskIndex()
            let partial = index.fill(with: rows, savedAt: savedAt, listing: listing)
            #expect(partial.new.isEmpty == (savedAt > written))
        }
    }

    /// More rows than any cache has: a hostile file is not read.
    @Test func anIndexOfMoreThanFourMillionRowsIsNone() {
        let empty = IndexFileLayout(count: 0).length
        #expect(IndexFileLayout.count(forLength: empty + 76 * 4_194_304) == 4_194_304)
        #expect(IndexFileLayout.count(forLength: empty + 76 * 4_194_305) == nil)
    }
}
