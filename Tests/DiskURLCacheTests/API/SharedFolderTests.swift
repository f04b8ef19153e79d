import Foundation
import Testing

@testable import DiskURLCache

/// Caches that name the same folder, and folders that a cache cannot use as it was told to.
@Suite(.fewAtATime) struct SharedFolderTests {
    private let scratch: ScratchDirectory
    private var folder: URL { scratch.appending("cache") }
    private let request = Responses.request("/a")

    init() throws { scratch = try ScratchDirectory() }

    private func open(
        memory: Int = 1 << 20, disk: Int = 10 << 20, _ change: (inout DiskURLCache.Configuration) -> Void = { _ in }
    ) -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: memory, diskCapacity: disk, directory: folder)
        change(&configuration)
        return DiskURLCache(configuration: configuration)
    }

    private func store(in cache: DiskURLCache) {
        cache.storeCachedResponse(Responses.cached(request.url!, "kept"), for: request)
        cache.flush()
    }

    /// An app has a cache on disk and one in memory, both with the default folder.
    @Test func aCacheInMemoryOnlyOpensNoFolder() throws {
        let first = open(disk: 0)
        store(in: first)
        #expect(first.cachedResponse(for: request) != nil)
        #expect(!FileManager.default.fileExists(atPath: folder.path))
        #expect(first.openingError == nil)
        #expect(first.currentDiskUsage == 0)
        // A cache that was made without a disk layer gets none later.
        first.diskCapacity = 10 << 20
        #expect(first.diskCapacity == 0)
        store(in: first)
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }

    @Test func aCacheInMemoryOnlyEmptiesNoFolder() throws {
        for round in 0..<3 {
            let (onDisk, inMemory) = (open(), open(disk: 0))
            #expect((onDisk.cachedResponse(for: request) != nil) == (round > 0), "as the last launch left it")
            store(in: onDisk)
            #expect(inMemory.cachedResponse(for: request) == nil)
            inMemory.removeCachedResponse(for: request)
            inMemory.removeAllCachedResponses()
            inMemory.flush()
            onDisk.flush()
            onDisk.removeAllCachedResponses(from: .memory)
            #expect(onDisk.cachedResponse(for: request)?.data == Data("kept".utf8))
        }
    }

    /// What an app, a user or the system does to the directory of a cache in use.
    enum Disturbance: String, CaseIterable, Sendable {
        case removed, emptied, renamed, swapped
    }

    @Test(arguments: Disturbance.allCases, [0, 1 << 20])
    func whatIsStoredAfterADisturbanceIsFound(of disturbance: Disturbance, memory: Int) throws {
        let cache = open(memory: memory)
        store(in: cache)
        // A pass that finds the disturbance during a store refuses that one, since nobody knows what was removed
        // meanwhile.
        cache.rest()
        let files = FileManager.default
        switch disturbance {
        case .removed: try files.removeItem(at: folder)
        case .emptied:
            for name in try files.contentsOfDirectory(atPath: folder.path) {
                try files.removeItem(at: folder.appendingPathComponent(name))
            }
        case .renamed: try files.moveItem(at: folder, to: scratch.appending("away"))
        case .swapped:
            let other = scratch.appending("other")
            store(in: DiskURLCache(memoryCapacity: memory, diskCapacity: 10 << 20, directory: other))
            try files.moveItem(at: folder, to: scratch.appending("away"))
            try files.moveItem(at: other, to: folder)
        }
        let requests = (0..<10).map { Responses.request("/later\($0)") }
        for request in requests {
            cache.storeCachedResponse(Responses.cached(request.url!, "later"), for: request)
        }
        cache.wake()
        func found() -> Int { requests.filter { cache.cachedResponse(for: $0)?.data == Data("later".utf8) }.count }
        cache.flush()
        #expect(found() == 10)
        cache.removeAllCachedResponses(from: .memory)
        #expect(found() == 10)
    }

    @Test func theSettingsOfTheFirstCacheHold() async throws {
        let first = open()
        var events = first.events().makeAsyncIterator()
        let same = open()
        #expect(same.openingError == nil)
        let second = open(memory: 2 << 20, disk: 20 << 20) { $0.keepsURLs = false }
        #expect((first.memoryCapacity, first.diskCapacity) == (1 << 20, 10 << 20))
        #expect((second.memoryCapacity, second.diskCapacity) == (1 << 20, 10 << 20))
        #expect(first.openingError == nil)
        let error = try #require(second.openingError)
        #expect(error.code == .settingsWithoutEffect)
        #expect(error.path == folder.path)
        #expect(error.description.contains("diskCapacity, keepsURLs, memoryCapacity."))
        guard case .problem(error)? = await events.next() else {
            Issue.record("no event")
            return
        }
    }

    @Test(arguments: ["missing", "not a file URL"]) func aFallbackThatCannotBeReadIsTold(kind: String) throws {
        let url = try kind == "missing" ? scratch.appending("none") : #require(URL(string: "https://example.com/"))
        let cache = open { $0.fallbackDirectories = [url] }
        let error = try #require(cache.openingError)
        #expect(error.code == (kind == "missing" ? .notACache : .notAFileURL))
        #expect(error.path == (kind == "missing" ? url.path : url.absoluteString))
        // The cache works on.
        store(in: cache)
        cache.removeAllCachedResponses(from: .memory)
        #expect(cache.cachedResponse(for: request) != nil)
    }
}
