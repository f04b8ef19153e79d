import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a cache does on Apple platforms, where the system's own loader calls it: the same code, with the platform as data.
@Suite(.fewAtATime) struct SystemContractTests {
    private let scratch: ScratchDirectory
    private let cache: DiskURLCache
    private let plain = URLSession(configuration: .ephemeral.patient)

    init() throws {
        scratch = try ScratchDirectory("contract")
        cache = Self.cache(scratch)
    }

    private static func cache(
        _ scratch: ScratchDirectory, _ platform: Platform = .iOS, memory: Int = 8 << 20, disk: Int = 64 << 20
    ) -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: memory, diskCapacity: disk, directory: scratch.appending("cache"))
        configuration.platform = platform
        configuration.superclassDiskPath = scratch.appending("superclass").path
        return DiskURLCache(configuration: configuration)
    }

    private func lookup(_ task: URLSessionDataTask, in cache: DiskURLCache) async -> CachedURLResponse? {
        let found = Mutex<CachedURLResponse?>(nil)
        await withCheckedContinuation { continuation in
            cache.getCachedResponse(for: task) { response in
                found.withLock { $0 = response }
                continuation.resume()
            }
        }
        return found.withLock { $0 }
    }

    @Test func attachingSetsTheCacheAndNoLoader() {
        let configuration = URLSessionConfiguration.ephemeral.patient
        cache.attach(to: configuration)
        #expect(configuration.urlCache === cache)
        #expect(configuration.protocolClasses?.contains(where: CachingURLProtocol.isLoader) != true)
    }

    @Test func whatEachPlatformRegisters() {
        #expect(Platform.linux.attachesLoader && !Platform.linux.makesSessionClasses)
        for platform in [Platform.macOS, .iOS] { #expect(!platform.attachesLoader && platform.makesSessionClasses) }
        #expect(!Platform.watchOS.attachesLoader && !Platform.watchOS.makesSessionClasses)
        #expect(Platform.macOS.lockLifetime == .whileOpen && Platform.iOS.lockLifetime == .duringPass)
    }

    @Test func capacitiesAreAsGivenAndTheSuperclassIsToldToKeepResponses() {
        #expect(cache.memoryCapacity == 8 << 20)
        #expect(cache.diskCapacity == 64 << 20)
        let told = Platform.iOS.superclassCapacities(memory: 1 << 20, disk: 200 << 20)
        #expect(told.memory == 64 << 20 && told.disk == 0)
        #expect(Platform.iOS.superclassCapacities(memory: 100 << 20, disk: 0).memory == 100 << 20)
        #expect(Platform.linux.superclassCapacities(memory: 1, disk: 1) == (0, 0))
    }

    @Test func aTaskGetsWhatWasStoredUnchangedAndStale() async throws {
        let url = Responses.url("/a")
        let fields = [
            "Date": "Mon, 01 Jan 2001 00:00:00 GMT", "Age": "7", "Cache-Control": "max-age=1", "ETag": "\"1\"",
            "Set-Cookie": "a=b", "Connection": "close",
        ]
        let stored = Responses.cached(
            url, "old", fields: fields, userInfo: ["a": "b"], policy: .allowedInMemoryOnly)
        let task = plain.dataTask(with: url)
        cache.storeCachedResponse(stored, for: task)
        let found = try #require(await lookup(task, in: cache))
        let response = try #require(found.response as? HTTPURLResponse)
        #expect(HeaderFields(response) == HeaderFields(dictionary: fields))
        #expect(found.data == stored.data && found.storagePolicy == .allowedInMemoryOnly)
        #expect(found.userInfo?["a"] as? String == "b")
        #expect(SuperclassCopy.isSame(found, stored))
    }

    @Test func itIsReadFromDiskByAnotherProcess() async throws {
        let task = plain.dataTask(with: Responses.url("/a"))
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "body"), for: task)
        cache.flush()
        cache.removeMemory()
        #expect(await lookup(task, in: cache)?.data == Data("body".utf8))
    }

    @Test func whatTheSuperclassTakesForOneStaysApart() {
        // The superclass on Linux drops the query from its key: its object for the other page must not be handed out.
        for page in ["1", "2", "1"] {
            let request = Responses.request("/list?page=\(page)")
            if cache.cachedResponse(for: request) == nil {
                cache.storeCachedResponse(Responses.cached(Responses.url("/list?page=\(page)"), page), for: request)
            }
            #expect(cache.cachedResponse(for: request)?.data == Data(page.utf8))
        }
    }

    @Test func partsAreNeitherStoredNorAnswered() {
        let url = Responses.url("/a")
        let part = Responses.request("/a", fields: ["Range": "bytes=0-1"])
        cache.storeCachedResponse(Responses.cached(url, "bo", status: 206), for: part)
        cache.storeCachedResponse(Responses.cached(url, "bo", status: 206), for: Responses.request("/a"))
        #expect(cache.cachedResponse(for: Responses.request("/a")) == nil)
        cache.storeCachedResponse(Responses.cached(url), for: Responses.request("/a"))
        #expect(cache.cachedResponse(for: part) == nil)
        #expect(cache.cachedResponse(for: Responses.request("/a")) != nil)
    }

    @Test func aResponseBelongsToTheRequestThatItAnswers() {
        let first = Responses.request("/a")
        let second = Responses.request("/b#part")
        func chosen(_ url: String?) -> URL? {
            SystemContract.request(
                original: first, current: second, answeredBy: url.map { Responses.url($0) })?.url
        }
        #expect(chosen("/b") == second.url)
        #expect(chosen("/a") == first.url)
        #expect(chosen("/c") == nil)
        #expect(chosen(nil) == second.url)
    }

    @Test func aRedirectIsNotStoredForWhereItLeads() {
        let task = plain.dataTask(with: Responses.url("/b"))
        let redirect = Responses.cached(Responses.url("/a"), "", status: 301, fields: ["Location": "/b"])
        cache.storeCachedResponse(redirect, for: task)
        #expect(cache.cachedResponse(for: Responses.request("/b")) == nil)
    }

    // MARK: The superclass's object

    @Test func theSuperclasssOwnObjectIsHandedOut() {
        let stored = Responses.cached(Responses.url("/a"), "a")
        let object = Responses.cached(Responses.url("/a"), "a")
        var kept: CachedURLResponse?
        let given = SuperclassCopy.copy(of: stored, store: { _ in kept = object }, find: { kept })
        #expect(given === object)
        var stores = 0
        #expect(SuperclassCopy.copy(of: stored, store: { _ in stores += 1 }, find: { object }) === object)
        #expect(stores == 0)
    }

    @Test(arguments: [
        Responses.cached(Responses.url("/a"), "b"), Responses.cached(Responses.url("/b"), "a"),
        Responses.cached(Responses.url("/a"), "a", status: 404),
        Responses.cached(Responses.url("/a"), "a", fields: ["Cache-Control": "max-age=1"]),
        Responses.cached(Responses.url("/a"), "a", policy: .allowedInMemoryOnly),
        Responses.cached(Responses.url("/a"), "a", userInfo: ["a": 1]),
    ]) func anotherObjectIsNot(_ other: CachedURLResponse) {
        let stored = Responses.cached(Responses.url("/a"), "a")
        #expect(SuperclassCopy.copy(of: stored, store: { _ in }, find: { other }) === stored)
        #expect(SuperclassCopy.copy(of: stored, store: { _ in }, find: { nil }) === stored)
    }
}
