import DiskURLCache
import DiskURLCacheTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A disk that fails when the test says so, used as an app's own tests use it.
@Suite(.fewAtATime) struct TestDiskTests {
    private let disk = DiskURLCache.TestDisk()
    private let clock = DiskURLCache.TestClock(date: Date(timeIntervalSince1970: 1_800_000_000))

    private func cache(memory: Int = 1 << 20) -> DiskURLCache {
        DiskURLCache.forTesting(clock: clock, disk: disk) { $0.memoryCapacity = memory }
    }

    private func store(_ path: String, in cache: DiskURLCache) {
        cache.storeCachedResponse(Responses.cached(Responses.url(path), path), for: Responses.request(path))
    }

    private func body(_ path: String, in cache: DiskURLCache) -> String? {
        cache.cachedResponse(for: Responses.request(path)).map { String(decoding: $0.data, as: UTF8.self) }
    }

    @Test func aDiskWithoutAFaultKeepsWhatIsStoredByTheClockOfTheTest() async throws {
        do {
            let cache = cache()
            #expect(cache.openingError == nil && cache.diskCapacity > 0)
            store("/a", in: cache)
            cache.flush()
        }
        let reopened = cache(memory: 0)
        #expect(body("/a", in: reopened) == "/a")
        #expect(reopened.statistics.diskHits == 1)
        let origin = ClosureTransport { _, exchange in
            exchange.head(200, ["Cache-Control": "max-age=60"])
            await exchange.piece("new")
        }
        func load() async throws -> Data {
            try await reopened.answer(to: Responses.request("/a"), through: origin).data
        }
        #expect(try await load() == Data("/a".utf8))
        clock.advance(by: .hours(2))
        #expect(try await load() == Data("new".utf8), "expired by the clock")
        #expect(try await load() == Data("new".utf8))
        #expect(origin.requests.count == 1)
    }

    @Test func onAFullDiskNothingIsStoredAndWhatIsThereIsReadAndRemoved() {
        let cache = cache()
        for path in ["/a", "/b"] { store(path, in: cache) }
        cache.flush()
        disk.fault = .full
        store("/c", in: cache)
        #expect(body("/c", in: cache) == "/c", "memory has it")
        cache.removeAllCachedResponses(from: .memory)
        #expect(body("/c", in: cache) == nil)
        #expect(body("/a", in: cache) == "/a")
        cache.removeCachedResponse(for: Responses.request("/b"))
        #expect(body("/b", in: cache) == nil)
        disk.fault = nil
        #expect(body("/b", in: cache) == nil)
        store("/c", in: cache)
        cache.removeAllCachedResponses(from: .memory)
        #expect(body("/c", in: cache) == "/c")
    }

    /// An app that loads does not notice it.
    @Test(arguments: DiskURLCache.TestDisk.Fault.allCases)
    func loadsGoOnWithoutTheDisk(fault: DiskURLCache.TestDisk.Fault) async throws {
        let cache = cache()
        let origin = ClosureTransport { request, exchange in
            exchange.head(200, ["Cache-Control": "max-age=60"])
            await exchange.piece(request.url?.path ?? "")
        }
        func load(_ path: String) async throws -> String {
            String(decoding: try await cache.answer(to: Responses.request(path), through: origin).data, as: UTF8.self)
        }
        #expect(try await load("/a") == "/a")
        cache.flush()
        disk.fault = fault
        for _ in 0..<2 { for path in ["/a", "/b"] { #expect(try await load(path) == path) } }
        #expect(origin.requests.count == 2, "memory has both")
        disk.fault = nil
        #expect(try await load("/c") == "/c")
        cache.flush()
        cache.removeAllCachedResponses(from: .memory)
        #expect(body("/c", in: cache) == "/c", "the disk works again")
    }

    @Test func whatCannotBeReadIsAMiss() {
        let cache = cache(memory: 0)
        store("/a", in: cache)
        cache.flush()
        #expect(body("/a", in: cache) == "/a")
        disk.fault = .unreadable
        #expect(body("/a", in: cache) == nil)
        disk.fault = nil
        store("/a", in: cache)
        #expect(body("/a", in: cache) == "/a")
    }

    @Test func aFolderThatMayNotBeOpenedIsToldAndTheCacheGoesOnInMemory() throws {
        disk.fault = .notPermitted
        let cache = cache()
        let error = try #require(cache.openingError)
        #expect(error.path.hasPrefix(disk.folder.path))
        store("/a", in: cache)
        #expect(body("/a", in: cache) == "/a")
        cache.removeAllCachedResponses(from: .memory)
        #expect(body("/a", in: cache) == nil)
    }

    @Test func theFolderIsGoneWithTheDisk() async {
        func fill() -> URL {
            let disk = DiskURLCache.TestDisk()
            let cache = DiskURLCache.forTesting(disk: disk)
            store("/a", in: cache)
            cache.flush()
            #expect(FileManager.default.fileExists(atPath: disk.folder.path))
            return disk.folder
        }
        let folder = fill()
        await eventually("the removal of the folder") { !FileManager.default.fileExists(atPath: folder.path) }
    }

    @Test func aDiskPrintsItsFault() {
        #expect("\(disk)".contains("works"))
        disk.fault = .full
        #expect("\(disk)".contains("full") && "\(disk)".contains(disk.folder.path))
    }
}
