import Testing

@testable import DiskURLCache

@Suite struct URIFilterTests {
    /// Never a no for what is there, through growth and removal; and it says no often enough to be of use.
    @Test func neverDeniesWhatIsThere() {
        var index = DiskIndex()
        var present: Set<Int> = []
        func row(_ number: Int) -> IndexRow {
            var row = IndexRow(digest: DiskKey.test("\(number)").digest, slot: 0, allocated: 4096, accessedAt: 0)
            row.flags = []
            // Every tenth shares its URL with its neighbour, as variants and keyed bodies do.
            row.uriHash = UInt32(truncatingIfNeeded: (number / 10 * 10 + max(1, number % 10)) &* 2_654_435_761)
            return row
        }
        for number in 0..<2_000 {
            index.insert(row(number))
            present.insert(number)
        }
        for number in stride(from: 0, to: 2_000, by: 3) {
            index.remove(row(number).digest, 0)
            present.remove(number)
        }
        #expect(present.allSatisfy { index.mayContain(uriHash: row($0).uriHash) })
        let absent = (10_000..<12_000).filter { index.mayContain(uriHash: row($0).uriHash) }
        #expect(absent.count < 400)
    }

    @Test func aRowWithoutItsURLAnswersForAll() {
        var index = DiskIndex()
        #expect(!index.mayContain(uriHash: 7))
        let partial = IndexRow(digest: DiskKey.test("a").digest, slot: 0, allocated: 4096, accessedAt: 0)
        index.insert(partial)
        #expect(index.mayContain(uriHash: 7))
        index.remove(partial.digest, 0)
        #expect(!index.mayContain(uriHash: 7))
    }

    @Test func aFullCounterStaysFull() {
        var filter = URIFilter()
        for _ in 0..<300 { filter.insert(1) }
        for _ in 0..<300 { filter.remove(1) }
        #expect(filter.mayContain(1))
    }
}
