import Foundation
import Testing

@testable import DiskURLCache

@Suite("Disk index") struct DiskIndexTests {
    private func row(_ number: Int, slot: UInt8 = 0, bytes: Int = 4096) -> IndexRow {
        // Few different first words, so that keys meet in the table.
        let digest = KeyDigest(words: SIMD4(UInt64(number % 7), UInt64(number), 0, 0))
        return IndexRow(digest: digest, slot: slot, allocated: bytes, accessedAt: 0)
    }

    @Test func agreesWithASimpleModel() {
        var index = DiskIndex()
        var model: [IndexRow] = []
        var random = TestRandom(1)
        for step in 0..<20_000 {
            let number = Int.random(in: 0..<60, using: &random)
            let row = row(number, slot: UInt8(step % 3), bytes: Int.random(in: 0..<100_000, using: &random))
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<4:
                index.insert(row)
                model.removeAll { $0.digest == row.digest && $0.slot == row.slot }
                model.append(row)
            case 4:
                index.insert(row, asOldest: true)
                model.removeAll { $0.digest == row.digest && $0.slot == row.slot }
                model.insert(row, at: 0)
            case 5..<8:
                let removed = index.remove(row.digest, row.slot)
                #expect((removed != nil) == model.contains { $0.digest == row.digest && $0.slot == row.slot })
                model.removeAll { $0.digest == row.digest && $0.slot == row.slot }
            default:
                index.touch(row.digest, now: 0)
                _ = index.takeTouched(10)
                let touched = model.filter { $0.digest == row.digest }
                model.removeAll { $0.digest == row.digest }
                model += touched
            }
            if step % 50 == 0 {
                var listed: [IndexRow] = []
                index.forEachLeastRecentFirst {
                    listed.append($0)
                    return true
                }
                #expect(Set(listed) == Set(model))
                #expect(listed.filter { $0.slot == 0 }.map(\.digest) == model.filter { $0.slot == 0 }.map(\.digest))
                #expect(index.count == model.count)
                #expect(index.bytes == model.reduce(0) { $0 + $1.bytes })
                for row in model { #expect(index.row(row.digest, row.slot) == row) }
            }
        }
    }

    @Test func takesNoMoreThan160BytesForAnEntry() {
        #expect(MemoryLayout<IndexRow>.stride == 64)
        // Rows, two links, and at most sixteen bytes of table, with a quarter of slack.
        #expect(Double(MemoryLayout<IndexRow>.stride + 8) * 1.25 + 16 <= 160)
        #expect(IndexFileLayout.rowLength <= 64)
    }

    @Test func fileKeepsEverythingAndTheOrder() throws {
        var index = DiskIndex()
        for number in 0..<100 {
            var row = row(number, slot: UInt8(number % 8), bytes: number * 512)
            row.uriHash = UInt32(number)
            row.hostHash = 1 << 31 + UInt32(number)
            row.tagFilter = TagFilter(["\(number)"])
            row.varyHash = .max - UInt32(number)
            row.storedAt = UInt32(number) * 3
            row.flags = number % 2 == 0 ? .pinned : .partial
            index.insert(row)
        }
        var bytes = IndexFile.encode(index, snapshot: 0x0123_4567_89AB_CDEF)
        let decoded = try #require(bytes.withUnsafeMutableBytes { IndexFile.decode($0) })
        #expect(decoded.snapshot == 0x0123_4567_89AB_CDEF)
        func list(_ index: DiskIndex) -> [IndexRow] {
            var rows: [IndexRow] = []
            index.forEachLeastRecentFirst {
                rows.append($0)
                return true
            }
            return rows
        }
        #expect(list(decoded.index) == list(index))
        #expect(decoded.index.bytes == index.bytes)
        #expect(decoded.index.pinnedBytes == index.pinnedBytes)
        var empty = IndexFile.encode(DiskIndex(), snapshot: 1)
        #expect(empty.withUnsafeMutableBytes { IndexFile.decode($0) }?.index.count == 0)
    }

    @Test func policySparesPinnedRowsWithinTheirShare() {
        var index = DiskIndex()
        for number in 0..<10 {
            var row = row(number)
            if number < 4 { row.flags = .pinned }
            index.insert(row)
        }
        func victims(_ limit: Int, _ excess: Int) -> [Int] {
            EvictionPolicy(pinnedLimit: limit).victims(in: index, freeing: excess).map { Int($0.digest.words[1]) }
        }
        #expect(victims(4 * 4096, 1) == [4])
        #expect(victims(4 * 4096, 4096 * 2 + 1) == [4, 5, 6])
        #expect(victims(3 * 4096, 4096 * 2) == [0, 4])
        #expect(victims(0, 4096 * 2) == [0, 1])
        #expect(victims(0, 0) == [])
        for number in 4..<10 { index.remove(row(number).digest, 0) }
        #expect(victims(4 * 4096, 1) == [0])
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

    @Test func stagedWritesKeepOrderAndWeight() throws {
        var staged = StagedWrites()
        for number in 0..<3000 {
            staged.insert(
                .test(testBody(number, length: 10)), for: .test("\(number % 100)"), varyHash: UInt64(number % 2))
        }
        #expect(staged.count == 100)
        #expect(staged.bytes == 100 * (1024 + 10))
        staged.remove(.test("5"), varyHash: 1)
        for write in staged.all(where: { $0.key == .test("6") }) { staged.finish(write) }
        var order: [UInt64] = []
        while let write = staged.next() {
            #expect(staged.isPlanned(write))
            order.append(write.order)
            staged.finish(write)
            #expect(!staged.isPlanned(write))
        }
        #expect(order.count == 98)
        #expect(order == order.sorted())
        #expect(staged.isEmpty)
        #expect(staged.bytes == 0)
    }

    @Test func namesAreReadStrictly() {
        let digest = DiskKey.test("a").digest
        #expect(RecordName(digest.hex + "7") == RecordName(digest: digest, slot: 7))
        for name in [
            "", digest.hex, digest.hex + "8", digest.hex + "/", digest.hex + "00", digest.hex.uppercased() + "0",
        ] {
            #expect(RecordName(name) == nil)
        }
        let path = DiskPaths(directory: "/a/b//").withRecord(digest, 3) { String(cString: $0) }
        #expect(path == "/a/b/records/" + digest.hex + "3")
        #expect(DiskPaths.isTrash("trash-0123456789abcdef"))
        #expect(!DiskPaths.isTrash("trash-0123456789abcdeX"))
        #expect(!DiskPaths.isTrash("trash-"))
    }
}
