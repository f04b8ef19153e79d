import Foundation
import Testing

@testable import DiskURLCache

/// The least recently used record is evicted first: exactly within a process and into the next one, by the time of
/// writing after a crash.
@Suite("Order of use", .fewAtATime) struct RecencyTests {
    private let fixture: DiskFixture

    init() throws { fixture = try DiskFixture() }
    /// Numbers of the entries, the least recently used first.
    private func order(_ store: DiskStore) -> [String] {
        var names: [String] = []
        store.forEachRecord { names.append($0.metadata.tags.first ?? "?") }
        return names
    }

    private func fill(_ store: DiskStore, _ numbers: some Sequence<Int>) {
        for number in numbers {
            store.store(
                .test(testBody(number), sequence: UInt64(number + 1), tags: ["\(number)"]), for: .test("\(number)"))
        }
    }

    private func names(_ numbers: [Int]) -> [String] { numbers.map(String.init) }

    @Test func usesAndWritesTakeTheirPlaceByTime() throws {
        let store = fixture.open()
        fill(store, 0..<6)
        let early = MonotonicTime.nanoseconds
        let between = MonotonicTime.nanoseconds
        _ = store.variants(of: .test("0"))
        let late = MonotonicTime.nanoseconds
        _ = store.variants(of: .test("2"))
        #expect(order(store) == names([1, 3, 4, 5, 0, 2]))
        // What memory answered is told later, and in any order.
        store.noteUses([(RequestKey.test("1").name, late), (RequestKey.test("3").name, early)])
        #expect(order(store) == names([4, 5, 3, 0, 1, 2]))
        // An earlier use than one that is known does nothing.
        store.noteUses([(RequestKey.test("2").name, early)])
        #expect(order(store) == names([4, 5, 3, 0, 1, 2]))
        // What was stored before the others were used is written after it.
        store.write(.test(testBody(7), tags: ["7"]), for: RequestKey.test("7"), usedAt: between)
        #expect(order(store) == names([4, 5, 3, 7, 0, 1, 2]))
        // Looking whether something is there is no use.
        #expect(store.contains(.test("4")))
        #expect(store.mayContain(.test("4")))
        #expect(order(store) == names([4, 5, 3, 7, 0, 1, 2]))
    }

    /// A lookup does not wait until the folder is listed.
    @Test func aUseBeforeThereIsAnIndexCounts() {
        let first = fixture.open()
        fill(first, 0..<3)
        first.close()
        let maintenance = MaintenanceQueue()
        maintenance.pause()
        let disk = DiskStore(
            configuration: .init(directory: fixture.directory, capacity: 100 << 20), maintenance: maintenance)
        let store = TieredStore.over(disk, maintenance)
        #expect(disk.body(.test("0")) == testBody(0))
        maintenance.resume()
        store.flush()
        #expect(order(disk) == names([1, 2, 0]))
    }

    /// A guest, or an app between its granted times, notes them for whoever makes the index: the latest ones.
    @Test func usesOfAGuestCountAfterManyMisses() {
        let first = fixture.open()
        first.flush()
        fill(first, 0..<3)
        let guest = fixture.open()
        guest.flush()
        #expect(!guest.isOwner)
        for number in 0..<5_000 { _ = guest.variants(of: .test("none \(number)")) }
        _ = guest.variants(of: .test("0"))
        guest.noteUses([(RequestKey.test("1").name, MonotonicTime.nanoseconds)])
        first.close()
        guest.flush()
        #expect(order(guest) == names([2, 0, 1]))
    }

    @Test func theOrderSurvivesIntoTheNextProcess() throws {
        var store = fixture.open()
        fill(store, 0..<10)
        store.close()
        var expected = Array(0..<10)
        var random = TestRandom(3)
        for round in 0..<12 {
            store = fixture.open()
            store.flush()
            for _ in 0..<5 {
                let number = Int.random(in: 0..<10, using: &random)
                if number % 3 == 0 { fill(store, [number]) } else { _ = store.variants(of: .test("\(number)")) }
                expected.removeAll { $0 == number }
                expected.append(number)
                // Some saved at once, some at the end.
                if number % 4 == 1 { store.flush() }
            }
            #expect(order(store) == names(expected))
            store.close()
            let next = fixture.open()
            #expect(order(next) == names(expected), "round \(round)")
            next.close()
        }
    }

    @Test("A cache that takes the directory over keeps the newest") func takingOver() throws {
        let first = fixture.open(capacity: 2 << 20)
        first.flush()
        let second = fixture.open(capacity: 2 << 20)
        fill(first, 0..<100)
        first.flush()
        second.flush()
        #expect(!second.isOwner)
        fill(second, 100..<300)
        // The first one ends as a process does that is killed: it reads and saves nothing more.
        first.maintenance.pause()
        first.maintenance.perform { first.move(.close) }
        second.capacity = 900 << 10
        second.flush()
        #expect(fixture.log.count { $0 == .becameOwner } == 2)
        let left = order(second).compactMap { Int($0) }
        #expect(left.count > 150 && left.count < 230)
        #expect(left == Array((300 - left.count)..<300))
    }

    @Test func filesWithoutARowEnterByTheTimeOfTheirWriting() throws {
        var store = fixture.open()
        fill(store, 0..<20)
        store.close()
        for number in 0..<20 {
            // Ten seconds apart, the other way round.
            let path = try #require(fixture.onlyRecord(.test("\(number)")))
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSince1970: 1_790_000_000 - Double(number) * 10)],
                ofItemAtPath: path)
        }
        unlink(fixture.directory + "/index.plist")
        store = fixture.open()
        #expect(order(store) == names(Array((0..<20).reversed())))
    }
}
