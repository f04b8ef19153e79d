import Foundation
import Testing

@testable import DiskURLCache

/// What another cache on the directory, or somebody else, does to it.
@Suite struct OtherCachesTests {
    private let key = RequestKey.test("a")

    private func tiered(_ fixture: DiskFixture) -> (store: TieredStore, disk: DiskStore) {
        let maintenance = MaintenanceQueue()
        let disk = DiskStore(
            configuration: .init(directory: fixture.directory, capacity: 100 << 20), maintenance: maintenance)
        let store = TieredStore.over(disk, maintenance)
        return (store, disk)
    }

    private func put(_ number: Int, _ key: RequestKey, in store: TieredStore) {
        store.store(StoredEntry.test(testBody(number)).metadata, .memory(testBody(number)), for: key)
    }

    private func body(_ key: RequestKey, in store: TieredStore) -> Data? {
        store.lookup(key).variants().first?.load()?.body
    }

    // MARK: Removals

    @Test(arguments: ["key", "resource", "criteria", "all"], [true, false])
    func aRemovalReachesTheOthersMemoryWithinASecond(what: String, isByOwner: Bool) throws {
        let fixture = try DiskFixture()
        let (first, firstDisk) = tiered(fixture)
        first.flush()
        let (second, secondDisk) = tiered(fixture)
        second.flush()
        #expect(firstDisk.isOwner && !secondDisk.isOwner)
        put(1, key, in: first)
        first.flush()
        #expect(body(key, in: first) == testBody(1) && body(key, in: second) == testBody(1))
        let remover = isByOwner ? first : second
        switch what {
        case "key": remover.remove(key)
        case "resource": remover.remove(uri: key.uri)
        case "criteria": remover.remove(matching: EntryCriteria(storedAfter: .distantPast))
        default: remover.removeAll()
        }
        for disk in [firstDisk, secondDisk] { disk.nextCheck.set(0) }
        #expect(body(key, in: first) == nil && body(key, in: second) == nil)
        #expect(fixture.recordNames().isEmpty)
        // What is stored afterwards stays.
        put(2, key, in: first)
        put(3, .test("b"), in: second)
        first.flush()
        second.flush()
        for disk in [firstDisk, secondDisk] { disk.nextCheck.set(0) }
        #expect(body(key, in: second) == testBody(2) && body(.test("b"), in: first) == testBody(3))
    }
}
