import Testing

@testable import DiskURLCache

@Suite struct URITableTests {
    private func row(_ number: Int, slot: UInt8 = 0, uri: Int) -> IndexRow {
        var row = IndexRow(digest: DiskKey.test("\(number)").digest, slot: slot, allocated: 4096, accessedAt: 0)
        row.flags = []
        row.uriHash = UInt32(truncatingIfNeeded: uri &* 2_654_435_761)
        return row
    }

    private func hash(_ uri: Int) -> UInt32 { row(0, uri: uri).uriHash }

    /// Against a model: which URLs have rows, and which have exactly one, through growth, replacement and removal.
    @Test func knowsWhatIsThereAndWhatIsAlone() {
        var index = DiskIndex()
        var model: [Int: Set<Int>] = [:]
        var random = TestRandom(3)
        for step in 0..<30_000 {
            let number = Int.random(in: 0..<3_000, using: &random)
            // Every tenth shares its URL with its neighbour, as variants and keyed bodies do.
            let uri = number / 10 * 10 + max(1, number % 10)
            if Int.random(in: 0..<5, using: &random) < (step < 15_000 ? 3 : 2) {
                index.insert(row(number, uri: uri))
                model[uri, default: []].insert(number)
            } else {
                index.remove(row(number, uri: uri).digest, 0)
                model[uri]?.remove(number)
            }
            guard step % 1_000 == 999 else { continue }
            for uri in 0..<3_000 {
                let numbers = model[uri] ?? []
                #expect(index.mayContain(uriHash: hash(uri)) == !numbers.isEmpty)
                guard let lone = index.loneRow(uriHash: hash(uri)) else { continue }
                #expect(numbers.count == 1 && lone == row(numbers.first ?? -1, uri: uri))
            }
        }
        // Most are found: only those that had company once are not.
        let lone = model.filter { $0.value.count == 1 }.keys
        #expect(lone.filter { index.loneRow(uriHash: hash($0)) != nil }.count > lone.count * 3 / 4)
    }

    @Test func theSuccessorOfAReplacedRecordIsFound() {
        var index = DiskIndex()
        for slot in 0..<UInt8(4) {
            index.insert(row(1, slot: slot, uri: 7))
            if slot > 0 { index.remove(row(1, uri: 7).digest, slot - 1) }
            #expect(index.loneRow(uriHash: hash(7))?.slot == slot)
        }
    }

    /// Ten thousand keys of one URL, as an API has that is asked by `POST`: no longer a search for each.
    @Test func manyRowsOfOneURLAreOneEntry() {
        var table = URITable()
        for position in 0..<100_000 { table.insert(5, at: position) }
        #expect(table.capacity == 8)
        #expect(table.lonePosition(of: 5) == nil)
        for _ in 0..<99_998 { table.remove(5, rest: nil) }
        #expect(table.contains(5))
        table.remove(5, rest: 17)
        #expect(table.lonePosition(of: 5) == 17)
        table.remove(5, rest: nil)
        #expect(!table.contains(5))
        table.remove(5, rest: nil)
        #expect(!table.contains(5))
    }

    @Test func aRowWithoutItsURLAnswersForAll() {
        var index = DiskIndex()
        #expect(!index.mayContain(uriHash: 7))
        index.insert(row(1, uri: 9))
        #expect(index.loneRow(uriHash: hash(9)) != nil)
        let partial = IndexRow(digest: DiskKey.test("a").digest, slot: 0, allocated: 4096, accessedAt: 0)
        index.insert(partial)
        #expect(index.mayContain(uriHash: 7))
        // It may be of the same URL.
        #expect(index.loneRow(uriHash: hash(9)) == nil)
        index.remove(partial.digest, 0)
        #expect(!index.mayContain(uriHash: 7))
        #expect(index.loneRow(uriHash: hash(9)) != nil)
    }
}
