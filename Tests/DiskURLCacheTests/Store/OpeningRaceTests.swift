import Foundation
import Testing

@testable import DiskURLCache

/// What happens while the index is still being read must not be forgotten.
@Suite(.fewAtATime) struct OpeningRaceTests {
    @Test func storesAndRemovalsRightAfterOpening() throws {
        let directory = try SharedDirectory()
        for round in 0..<TestLength.pick(plain: 16, long: 150) {
            // With a store of its own. It would share that of the round before while that is alive, and that one is
            // closed.
            let cache = directory.open(SystemFiles(), .justOpened) {
                ($0.memoryCapacity, $0.diskCapacity, $0.clock) = (0, 1 << 20, .system)
            }
            if round.isMultiple(of: 2) { cache.removeAllCachedResponses() }
            for path in ["/x/1", "/x/2", "/y"] {
                var request = Responses.request(path)
                request.cacheOptions = .init(tags: path == "/y" ? ["other"] : ["group"])
                cache.storeCachedResponse(Responses.cached(request.url!, "\(path) \(round)"), for: request)
            }
            cache.removeCachedResponses(tag: "group")
            for _ in 0..<20 {
                let found = cache.cachedResponse(for: Responses.request("/y")).map {
                    String(decoding: $0.data, as: UTF8.self)
                }
                #expect(found == "/y \(round)")
                #expect(cache.contains(Responses.request("/y")))
                #expect(!cache.contains(Responses.request("/x/1")))
            }
            cache.store.close()
        }
    }

    /// What is removed while the index is read does not count afterwards.
    @Test func aClearingBetweenListingAndLoading() throws {
        let fixture = try DiskFixture()
        do {
            let store = fixture.open()
            for number in 0..<200 { store.store(.test(testBody(number, length: 10)), for: .test("\(number)")) }
            store.flush()
            store.close()
        }
        let (isLoading, mayLoad) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let isFirst = Mutex(true)
        let files = FaultyFileSystem()
        files.onListed = { _ in
            guard isFirst.disarm() else { return }
            isLoading.signal()
            mayLoad.isSignalled("the removal, which does not wait for the index")
        }
        let store = fixture.open(files: files)
        isLoading.isSignalled("the folder to be listed")
        store.removeAll()
        mayLoad.signal()
        #expect(store.usage == 0)
        #expect(store.variants(of: .test("7")).isEmpty)
    }

    /// A record that is removed while the index is read has no row afterwards.
    @Test func removalsBetweenListingAndLoading() throws {
        let fixture = try DiskFixture()
        let count = TestLength.pick(plain: 200, long: 3_000)
        do {
            let store = fixture.open()
            for number in 0..<count { store.store(.test(testBody(number, length: 10)), for: .test("\(number)")) }
            store.flush()
            store.close()
        }
        let (isLoading, mayLoad) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let isFirst = Mutex(true)
        let files = FaultyFileSystem { call in
            let isTurn = call.operation == .open && call.name == "index.plist"
            if isTurn,
                isFirst.disarm()
            {
                isLoading.signal()
                mayLoad.isSignalled("the removal, which does not wait for the index")
            }
            return nil
        }
        let store = fixture.open(files: files)
        isLoading.isSignalled("the index to be read")
        store.remove(.test("7"))
        mayLoad.signal()
        #expect(store.usage == fixture.allocatedByRecords())
        #expect(store.variants(of: .test("7")).isEmpty)
        #expect(store.body(.test("8")) == testBody(8, length: 10))
    }
}
