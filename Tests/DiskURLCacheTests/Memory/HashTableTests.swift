import Testing

@testable import DiskURLCache

@Suite(.fewAtATime) struct HashTableTests {
    /// Few distinct homes, so that runs collide, wrap round the end and close their gaps.
    @Test(arguments: [1, 7, 16, 1 << 20]) func findsWhatADictionaryFinds(homes: Int) {
        var table = HashTable()
        var model: [Int: Int] = [:]
        var generator = Seeded(state: 42)
        func hash(_ position: Int) -> Int { (position &* 7919) % homes &+ (homes == 16 ? 15 : 0) }
        for _ in 0..<5_000 {
            let position = Int.random(in: 0..<300, using: &generator)
            if model[position] == nil {
                table.insert(position, hash: hash(position), hashOf: hash)
                model[position] = hash(position)
            } else {
                table.remove(position, hash: hash(position), hashOf: hash)
                model[position] = nil
            }
            let asked = Int.random(in: 0..<300, using: &generator)
            let found = table.position(hash: hash(asked)) { $0 == asked }
            #expect((found != nil) == (model[asked] != nil))
        }
    }

    /// A table with room for a number of positions moves none of them when they come.
    @Test(arguments: [9, 1_000]) func roomThatWasMadeIsEnough(capacity: Int) {
        var table = HashTable()
        table.insert(0, hash: 0) { $0 }
        table.reserve(capacity) { $0 }
        var moved = 0
        for position in 1..<capacity {
            table.insert(position, hash: position) {
                moved += 1
                return $0
            }
        }
        #expect(moved == 0)
        #expect(table.position(hash: capacity - 1) { $0 == capacity - 1 } == capacity - 1)
    }

    @Test func removingWhatIsNotThereChangesNothing() {
        var table = HashTable()
        table.insert(3, hash: 5) { _ in 5 }
        table.remove(4, hash: 5) { _ in 5 }
        #expect(table.position(hash: 5) { $0 == 3 } == 3)
    }

    private struct Seeded: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ state >> 29
        }
    }
}
