import Foundation
import Testing

@testable import DiskURLCache

/// A value with any cost; a negative one is empty.
private struct Value: MemoryValue {
    let number: Int
    var cost: Int
    var isEmpty: Bool { number < 0 }
}

/// The resource is the first character.
private func key(_ text: String) -> RequestKey { RequestKey(text: text, uri: String(text.prefix(1)), isForHead: false) }

extension MemoryCache<Value> {
    fileprivate func insert(_ number: Int, for text: String, cost: Int) {
        update(key(text)) { $0 = Value(number: number, cost: cost) }
    }

    fileprivate func number(for text: String) -> Int? { value(for: key(text))?.number }
    fileprivate func contains(_ text: String) -> Bool { contains(key(text)) }
    fileprivate func removeValue(for text: String) { removeValue(for: key(text)) }
    fileprivate func generation(of text: String) -> UInt64 { generation(of: key(text)) }

    fileprivate func promote(_ number: Int, for text: String, readAt generation: UInt64) {
        promote(Value(number: number, cost: 1), for: key(text), readAt: generation)
    }
}

extension MemoryCache {
    /// How many values there are.
    var count: Int { uses(since: 0).count }
}

@Suite(.fewAtATime) struct MemoryCacheTests {
    private func cache(bytes: Int = 1_000) -> MemoryCache<Value> { MemoryCache(costLimit: bytes) }

    @Test func forgetsWhatWasUsedLeastRecently() {
        let cache = cache(bytes: 30)
        for value in 1...3 { cache.insert(value, for: "\(value)", cost: 10) }
        #expect(cache.number(for: "1") == 1)
        cache.insert(4, for: "4", cost: 10)
        #expect(cache.number(for: "2") == nil)
        for value in [1, 3, 4] { #expect(cache.number(for: "\(value)") == value) }
        #expect(cache.totalCost == 30)
    }

    @Test func keepsNoMoreKeysThanItsLimit() {
        let cache = MemoryCache<Value>(costLimit: 1_000, countLimit: 3)
        for value in 1...3 { cache.insert(value, for: "\(value)", cost: 1) }
        #expect(cache.number(for: "1") == 1)
        cache.insert(4, for: "4", cost: 1)
        cache.insert(5, for: "4", cost: 2)
        #expect(["1", "2", "3", "4"].map { cache.number(for: $0) } == [1, nil, 3, 5])
        // What goes in another way makes room.
        cache.removeValue(for: "1")
        cache.updateAll { if $0 == key("3") { $1 = nil } }
        for value in 6...7 { cache.insert(value, for: "\(value)", cost: 1) }
        #expect(["4", "6", "7"].map { cache.number(for: $0) } == [5, 6, 7])
        #expect(cache.count == 3)
    }

    /// The values are in shards, and a shard is looked at only if it may have the least recently used one.
    @Test func theOrderOfUseIsThatOfAllShards() {
        let cache = cache(bytes: 40)
        var order: [Int] = []
        var random = SystemRandomNumberGenerator()
        for _ in 0..<3_000 {
            let number = Int.random(in: 0..<120, using: &random)
            let isKnown = order.contains(number)
            order.removeAll { $0 == number }
            switch Int.random(in: 0..<8, using: &random) {
            case 0: cache.removeValue(for: "\(number)")
            case 1...3 where isKnown:
                #expect(cache.number(for: "\(number)") == number)
                order.append(number)
            default:
                cache.insert(number, for: "\(number)", cost: 1)
                order.append(number)
            }
            if order.count > 40 { order.removeFirst() }
        }
        #expect(cache.totalCost == order.count)
        let missing = order.filter { !cache.contains("\($0)") }
        #expect(missing.isEmpty)
        cache.costLimit = 10
        #expect(order.suffix(10).allSatisfy { cache.contains("\($0)") } && cache.count == 10)
    }

    @Test func replacingCountsTheDifference() {
        let cache = cache()
        cache.insert(1, for: "a", cost: 100)
        cache.insert(2, for: "a", cost: 40)
        #expect(cache.totalCost == 40)
        #expect(cache.count == 1)
        #expect(cache.number(for: "a") == 2)
    }

    @Test func whatIsTooLargeIsNotKeptAndTheOldValueGoes() {
        let cache = cache(bytes: 50)
        cache.insert(1, for: "a", cost: 10)
        cache.insert(2, for: "a", cost: 51)
        #expect(cache.number(for: "a") == nil)
        #expect(cache.totalCost == 0)
    }

    @Test func aLimitOfZeroKeepsNothing() {
        let cache = cache(bytes: 0)
        cache.insert(1, for: "a", cost: 1)
        #expect(cache.number(for: "a") == nil)
        let negative = MemoryCache<Value>(costLimit: -5)
        negative.insert(1, for: "a", cost: 1)
        #expect(negative.count == 0)
    }

    @Test func loweringTheLimitTrims() {
        let cache = cache()
        for value in 0..<10 { cache.insert(value, for: "\(value)", cost: 100) }
        cache.costLimit = 250
        #expect(cache.totalCost == 200)
        #expect(cache.number(for: "9") == 9)
        #expect(cache.number(for: "0") == nil)
    }

    @Test func removesWhatMatches() {
        let cache = cache()
        for value in 0..<10 { cache.insert(value, for: "\(value)", cost: 10) }
        cache.updateAll { if $1?.number.isMultiple(of: 2) == true { $1 = nil } }
        #expect(cache.count == 5)
        #expect(cache.totalCost == 50)
        cache.removeAll()
        #expect(cache.count == 0)
        #expect(cache.totalCost == 0)
    }

    /// A removal by resource costs what it removes, and changes no order of use.
    @Test func aResourceIsFoundWithoutAWalk() {
        let cache = cache(bytes: .max)
        for key in ["a1", "b1", "a2", "b2", "a3"] { cache.insert(1, for: key, cost: 1) }
        cache.insert(2, for: "a1", cost: 1)
        cache.removeValue(for: "a3")
        let generation = cache.generation(of: "a4")
        var visited: Set<String> = []
        cache.update(resource: key("a").resource) { key, value in
            visited.insert(key.text)
            if key.text == "a2" { value = nil }
        }
        #expect(visited == ["a1", "a2"])
        cache.promote(1, for: "a4", readAt: generation)
        #expect(cache.number(for: "a4") == nil, "it was read before the change")
        #expect(["a1", "b1", "b2"].allSatisfy(cache.contains) && cache.count == 3)
        cache.costLimit = 2
        #expect(!cache.contains("b1"), "the one that was used longest ago")
        cache.update(resource: key("a").resource) { $1 = Value(number: -1, cost: 0) }
        #expect(cache.count == 1 && cache.totalCost == 1)
    }

    /// It may have taken the value from memory, and finds it nowhere else any more.
    @Test func aReadDuringARemovalOfItsResourceIsNotKept() {
        let cache = cache()
        func shard(_ text: String) -> Int { key(text).hashValue >> (Int.bitWidth - 4) }
        // A key of the same shard cannot be read meanwhile.
        let texts = (1...1_000).map { "a\($0)" }
        guard let other = texts.first(where: { shard($0) != shard("a0") }) else {
            Issue.record("a thousand keys have one shard")
            return
        }
        for text in ["a0", other] { cache.insert(1, for: text, cost: 1) }
        var read: (text: String, generation: UInt64)?
        cache.update(resource: key("a").resource) { changed, value in
            if read == nil {
                let text = changed.text == "a0" ? other : "a0"
                read = (text, cache.generation(of: text))
            }
            value = nil
        }
        if let read { cache.promote(1, for: read.text, readAt: read.generation) }
        #expect(read != nil && cache.count == 0)
    }

    @Test func aReadIsKeptOnlyIfTheKeyDidNotChange() {
        let cache = cache()
        cache.promote(1, for: "a", readAt: cache.generation(of: "a"))
        #expect(cache.number(for: "a") == 1)

        let overtaken = cache.generation(of: "b")
        cache.insert(2, for: "b", cost: 1)
        cache.removeValue(for: "b")
        cache.promote(1, for: "b", readAt: overtaken)
        #expect(cache.number(for: "b") == nil)

        let cleared = cache.generation(of: "c")
        cache.removeAll()
        cache.promote(1, for: "c", readAt: cleared)
        #expect(cache.number(for: "c") == nil)

        // Of two reads at the same time, both found the same.
        let both = cache.generation(of: "d")
        for _ in 0..<2 { cache.promote(1, for: "d", readAt: both) }
        #expect(cache.number(for: "d") == 1)
        #expect(cache.totalCost == 1)
    }

    /// Against a plain model: what is there is what was stored last, and the totals are exact.
    @Test func agreesWithAModel() {
        let cache = cache(bytes: .max)
        var model: [String: (Int, Int)] = [:]
        var random = SystemRandomNumberGenerator()
        for step in 0..<20_000 {
            let key = "\(Int.random(in: 0..<200, using: &random))"
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                cache.removeValue(for: key)
                model[key] = nil
            case 1: #expect(cache.number(for: key) == model[key]?.0)
            default:
                let cost = Int.random(in: 0..<1_000, using: &random)
                cache.insert(step, for: key, cost: cost)
                model[key] = (step, cost)
            }
        }
        #expect(cache.count == model.count)
        #expect(cache.totalCost == model.values.reduce(0) { $0 + $1.1 })
    }

    @Test func manyThreadsKeepTheBoundsAndTheTotals() async {
        let cache = cache(bytes: 10_000)
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<8 {
                group.addTask {
                    for step in 0..<5_000 {
                        let key = "\((step * 7 + thread) % 300)"
                        switch step % 5 {
                        case 0: cache.removeValue(for: key)
                        case 1: cache.promote(step, for: key, readAt: cache.generation(of: key))
                        case 2:
                            if let hit = cache.number(for: key) {
                                #expect((0..<8).contains { "\((hit * 7 + $0) % 300)" == key })
                            }
                        default: cache.insert(step, for: key, cost: 100)
                        }
                    }
                }
            }
        }
        #expect(cache.totalCost <= 10_000)
        var total = 0
        var count = 0
        cache.updateAll { _, value in
            count += 1
            value?.cost = 1
        }
        total = cache.totalCost
        #expect(total == count)
        #expect(cache.count == count)
        cache.removeAll()
        #expect(cache.totalCost == 0)
        #expect(cache.count == 0)
    }
}
