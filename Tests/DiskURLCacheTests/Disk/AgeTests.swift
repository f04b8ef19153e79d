import Foundation
import Testing

@testable import DiskURLCache

/// Records that exceed a maximum age.
@Suite(.fewAtATime) struct AgeTests {
    private let fixture: DiskFixture
    private let key = RequestKey.test("a")

    init() throws { fixture = try DiskFixture() }

    /// What a lookup does not find is not there.
    @Test func whatIsTooOldIsNotContained() {
        let clock = ManualClock()
        let store = fixture.open(clock: clock.wallClock) { $0.maximumStorageAge = 100 }
        store.store(.test(testBody(1), storedAt: clock.now), for: key)
        store.flush()
        store.maintenance.pause()
        #expect(store.contains(key))
        clock.advance(by: 101)
        #expect(store.variants(of: key).isEmpty)
        #expect(!store.contains(key))
    }

    /// Its other variant is gone, so that the lookup looks into all slots.
    @Test func whatWasNotUsedForTooLongIsNotFoundBesideALostVariant() throws {
        let clock = ManualClock()
        let store = fixture.open(clock: clock.wallClock) { $0.maximumAccessAge = 100 }
        store.flush()
        store.maintenance.pause()
        store.store(.test(testBody(1), sequence: 1, storedAt: clock.now), for: key)
        clock.advance(by: 101)
        store.store(.test(testBody(2), sequence: 2, storedAt: clock.now, language: "de"), for: key)
        try FileManager.default.removeItem(atPath: fixture.recordPath(key, slot: 1))
        #expect(store.variants(of: key).isEmpty)
    }

    /// A use of one variant is none of another one that was found no more.
    @Test func whatWasNotUsedForTooLongIsNotFoundAgain() {
        let clock = ManualClock()
        let store = fixture.open(clock: clock.wallClock) { $0.maximumAccessAge = 100 }
        store.flush()
        store.maintenance.pause()
        store.store(.test(testBody(1), sequence: 1, storedAt: clock.now), for: key)
        clock.advance(by: 102)
        store.store(.test(testBody(2), sequence: 2, storedAt: clock.now, language: "de"), for: key)
        for _ in 0..<3 {
            #expect(store.variants(of: key).map { $0.load()?.body } == [testBody(2)])
            store.touch(key)
        }
    }

    /// With an age each pass visited all rows, under the lock of the lookups.
    @Test func passesInBetweenVisitNoRow() {
        let store = fixture.open { $0.maximumAccessAge = 1_000 }
        store.store(.test(testBody(1)), for: key)
        store.flush()
        store.maintenance.pause()
        let next = store.withIO { $0.upkeep.nextAgeCheck }
        #expect(next > MonotonicTime.seconds + 900)
        for number in 0..<3 {
            store.store(.test(testBody(number)), for: .test("\(number)"))
            store.maintenance.perform { store.runPass(isFlush: false) }
        }
        #expect(store.withIO { $0.upkeep.nextAgeCheck } == next)
    }

    /// Another cache has used it since.
    @Test func aUseOfAGuestTakesNothingBack() {
        let clock = ManualClock()
        let owner = fixture.open(clock: clock.wallClock) { $0.maximumAccessAge = 100 }
        owner.flush()
        let guest = fixture.open(clock: clock.wallClock) { $0.maximumAccessAge = 100 }
        guest.flush()
        owner.store(.test(testBody(1), storedAt: clock.now), for: key)
        #expect(!guest.isOwner && guest.body(key) == testBody(1))
        clock.advance(by: 90)
        #expect(owner.body(key) == testBody(1))
        owner.close()
        clock.advance(by: 20)
        guest.flush()
        #expect(guest.isOwner && guest.body(key) == testBody(1))
    }

    /// Nobody calls the cache when a record becomes too old.
    @Test(arguments: [true, false]) func whatBecomesTooOldIsRemovedThoughNothingHappens(isStored: Bool) async {
        let store = fixture.open {
            $0.savingInterval = 0.01
            if isStored { $0.maximumStorageAge = 100 } else { $0.maximumAccessAge = 1 }
        }
        // It becomes too old within two seconds, since rows know whole seconds.
        let result = store.store(.test(testBody(1), storedAt: Date() - (isStored ? 100 : 0)), for: key)
        #expect(result.refusal == nil)
        await eventually("the record is removed") { fixture.recordNames().isEmpty }
    }

    /// Another cache, or a backup, has changed the file: it is read, and what it says counts at once.
    @Test(arguments: [false, true]) func whatItsRowDoesNotDescribeIsReadBeforeItIsRemoved(isLater: Bool) throws {
        let clock = ManualClock()
        let other = try DiskFixture("other")
        let later = other.open()
        later.store(.test(testBody(2), storedAt: clock.now + (isLater ? 50 : 0)), for: key)
        later.close()
        let store = fixture.open(clock: clock.wallClock) { $0.maximumStorageAge = 100 }
        store.store(.test(testBody(1), storedAt: clock.now), for: key)
        store.flush()
        store.maintenance.pause()
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: try #require(fixture.onlyRecord(key))))
        try file.write(contentsOf: Data(contentsOf: URL(fileURLWithPath: try #require(other.onlyRecord(key)))))
        try file.close()
        clock.advance(by: 102)
        store.flush()
        #expect(fixture.recordNames().count == (isLater ? 1 : 0))
        clock.advance(by: 50)
        store.flush()
        #expect(fixture.recordNames().isEmpty)
    }
}
