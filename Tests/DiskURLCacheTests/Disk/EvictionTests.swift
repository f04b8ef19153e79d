import Foundation
import Testing

@testable import DiskURLCache

/// The file of a record that is evicted is removed without the lock of the files: nobody waits for it.
@Suite(.fewAtATime) struct EvictionTests {
    /// A cache above its capacity. The first removal of an evicted file waits for a gate.
    private final class Fixture: Sendable {
        let disk: DiskFixture
        let store: DiskStore
        let gate = Gate()
        let isFlushed = Flag()
        /// The record that is evicted first.
        let victim = RequestKey.test("0")

        /// - Parameters:
        ///   - key: whose file waits.
        ///   - fault: what happens to that file then.
        init(waitsAt key: RequestKey = .test("0"), fault: FaultyFileSystem.Fault? = nil) throws {
            disk = try DiskFixture()
            let isFirst = Mutex(true)
            let isEvicting = Mutex(false)
            let files = FaultyFileSystem { [gate] call in
                guard call.operation == .unlink, call.name.hasPrefix(key.name.hex),
                    isEvicting.withLock({ $0 }), isFirst.disarm()
                else { return nil }
                gate.wait()
                return fault
            }
            store = disk.open(files: files)
            for number in 0..<30 { store.store(.test(testBody(number)), for: .test("\(number)")) }
            store.flush()
            store.maintenance.pause()
            store.capacity = store.usage / 2
            isEvicting.withLock { $0 = true }
        }

        /// Returns while that file is about to be removed.
        func beginEviction() async {
            DispatchQueue.global().async { [self] in
                store.flush()
                isFlushed.set()
            }
            await gate.arrival()
        }

        func endEviction() async {
            gate.open()
            await isFlushed.isSet()
        }

        /// The names of the victim's records.
        var records: [String] { disk.recordNames().filter { $0.hasPrefix(victim.name.hex) } }

        /// Runs work that must not wait for the eviction.
        func meanwhile(_ work: @escaping @Sendable () -> Void) async {
            let isDone = Flag()
            DispatchQueue.global().async {
                work()
                isDone.set()
            }
            await isDone.isSet()
            #expect(!isFlushed.value)
        }
    }

    @Test func noStoreAndNoRemovalWaitsForAnEvictedFile() async throws {
        let fixture = try Fixture()
        let (store, victim) = (fixture.store, fixture.victim)
        await fixture.beginEviction()
        await fixture.meanwhile {
            for number in 0..<5 { store.store(.test(testBody(number)), for: .test("new \(number)")) }
            store.remove(.test("29"))
            store.remove(victim)
            // When a removal returns, the file is gone, also if the process dies now.
            #expect(fixture.records.isEmpty)
        }
        await fixture.endEviction()
        for number in 0..<5 { #expect(store.body(.test("new \(number)")) == testBody(number)) }
        #expect(!store.contains(.test("29")))
        #expect(store.usage <= store.capacity)
        #expect(store.usage == fixture.disk.allocatedByRecords())
    }

    /// The file is removed by its name, which a new record must not have by then.
    @Test(arguments: [true, false]) func whatIsStoredMeanwhileStays(isRemovedFirst: Bool) async throws {
        let fixture = try Fixture()
        let (store, victim) = (fixture.store, fixture.victim)
        await fixture.beginEviction()
        await fixture.meanwhile {
            if isRemovedFirst { store.remove(victim) }
            store.store(.test(testBody(100), sequence: 2), for: victim)
        }
        await fixture.endEviction()
        #expect(store.body(victim) == testBody(100))
        #expect(fixture.records.count == 1)
        #expect(store.usage == fixture.disk.allocatedByRecords())
    }

    /// The slot can be used again later.
    @Test func eachSlotIsFreeAfterTheEviction() async throws {
        let fixture = try Fixture()
        await fixture.beginEviction()
        await fixture.endEviction()
        #expect(fixture.records.isEmpty)
        fixture.store.store(.test(testBody(1)), for: fixture.victim)
        #expect(fixture.records == [RecordName(key: fixture.victim.name, slot: 0).text])
        #expect(fixture.store.body(fixture.victim) == testBody(1))
    }

    /// A record whose file cannot be removed keeps its row, unless it was replaced meanwhile.
    @Test(arguments: [true, false]) func aFileThatCannotBeRemoved(isReplaced: Bool) async throws {
        let fixture = try Fixture(fault: .error(EACCES))
        let (store, victim) = (fixture.store, fixture.victim)
        await fixture.beginEviction()
        await fixture.meanwhile {
            if isReplaced { store.store(.test(testBody(100), sequence: 2), for: victim) }
        }
        await fixture.endEviction()
        #expect(store.body(victim) == testBody(isReplaced ? 100 : 0))
        #expect(fixture.records.count == 1)
        #expect(fixture.disk.log.count { if case .cannotDelete(errno: EACCES) = $0 { true } else { false } } == 1)
        #expect(store.usage <= store.capacity)
        #expect(store.usage == fixture.disk.allocatedByRecords())
    }

    /// What another cache writes under the name of an evicted record, before the eviction ends, is known afterwards.
    @Test func aRecordOfAnotherCacheInTheSameSlot() async throws {
        let fixture = try Fixture(waitsAt: .test("1"))
        let (store, victim) = (fixture.store, fixture.victim)
        let path = fixture.disk.recordPath(victim)
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        await fixture.beginEviction()
        #expect(fixture.records.isEmpty)
        // The row of the file that is gone has another time of writing.
        try bytes.write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
        store.withIO { _ = store.records.examine(victim.name, &$0.events) }
        await fixture.endEviction()
        #expect(store.body(victim) == testBody(0))
        #expect(store.usage == fixture.disk.allocatedByRecords())
    }
}
