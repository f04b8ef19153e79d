import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

@Suite("An inspector looks without touching, and changes only what it is told to", .fewAtATime)
struct CacheInspectorTests {
    private let scratch: ScratchDirectory
    private let directory: URL

    init() throws {
        scratch = try ScratchDirectory()
        directory = scratch.appending("cache")
    }

    private func makeCache(entries: Int = 3, bodyLength: Int = 4, keepsURLs: Bool = true) -> DiskURLCache {
        var settings = DiskURLCache.Configuration(memoryCapacity: 0, diskCapacity: 10 << 20, directory: directory)
        settings.keepsURLs = keepsURLs
        let cache = DiskURLCache(configuration: settings)
        for number in 0..<entries {
            var request = Responses.request("/\(number)")
            request.cacheOptions = .init(tags: ["n\(number)"])
            let body = String(repeating: "\(number % 10)", count: bodyLength)
            cache.storeCachedResponse(
                Responses.cached(
                    Responses.url("/\(number)"), body,
                    fields: [
                        "Cache-Control": "max-age=3600", "Content-Type": "text/plain; charset=utf-8",
                        "Cache-Groups": "\"g\"",
                    ]),
                for: request)
        }
        cache.flush()
        return cache
    }

    /// Every file with its bytes.
    private func tree() -> [String: Data] {
        let files = scratch.files().map { ($0, FileManager.default.contents(atPath: scratch.appending($0).path)) }
        return Dictionary(uniqueKeysWithValues: files).compactMapValues { $0 }
    }

    @Test func factsOfARecordAreThoseThatWereStored() throws {
        let cache = makeCache()
        let inspector = try DiskURLCache.Inspector(directory: directory)
        let records = try inspector.records()
        #expect(records.count == 3)
        let record = try #require(records.first { $0.url == "https://example.com/1" })
        #expect(record.problem == nil)
        #expect(record.status == 200)
        #expect(record.method == "GET")
        // The group is a tag of the cache, not of the app.
        #expect(record.tags == ["n1"])
        #expect(record.fields.contains { $0 == ("Content-Type", "text/plain; charset=utf-8") })
        #expect(record.bytes == 4)
        #expect(record.bytesOnDisk >= 4)
        #expect(record.freshUntil.map { $0 > Date() } == true)
        #expect(inspector.body(of: record) == Data("1111".utf8))
        #expect(inspector.hasValidIndex)
        withExtendedLifetime(cache) {}
    }

    @Test func lookingChangesNoByteAndNoName() throws {
        let cache = makeCache()
        let before = tree()
        let inspector = try DiskURLCache.Inspector(directory: directory)
        for record in try inspector.records(verifyingBodies: true) { _ = inspector.body(of: record) }
        #expect(tree() == before)
        withExtendedLifetime(cache) {}
    }

    @Test func urlsThatWereNotKeptAreUnknown() throws {
        _ = makeCache(keepsURLs: false)
        let records = try DiskURLCache.Inspector(directory: directory).records()
        #expect(records.count == 3)
        #expect(records.allSatisfy { $0.url == nil && $0.status == 200 })
    }

    @Test func aFlippedByteOfABodyIsFoundByVerifyingAndStaysInPlace() throws {
        _ = makeCache(entries: 2, bodyLength: 50_000)
        let name = try #require(scratch.files().first { $0.contains("records/") })
        var bytes = try Data(contentsOf: scratch.appending(name))
        bytes[49_999] ^= 1
        try bytes.write(to: scratch.appending(name))
        let inspector = try DiskURLCache.Inspector(directory: directory)
        let records = try inspector.records(verifyingBodies: true)
        let damaged = records.filter { $0.problem?.code == .damaged }
        #expect(damaged.map { "cache/records/" + $0.fileName } == [name])
        #expect(records.count { $0.problem == nil } == 1)
        #expect(scratch.files().contains(name))
        #expect(inspector.remove(damaged) == 1)
        #expect(!scratch.files().contains(name))
    }

    @Test(arguments: ["", "missing", "file"]) func whatIsNoCacheIsSaidAndNotMade(_ name: String) throws {
        let place = name.isEmpty ? scratch.url : scratch.appending(name)
        if name == "file" { try Data("x".utf8).write(to: place) }
        let codes: [String: DiskURLCache.Error.Code] = ["": .notACache, "missing": .notACache, "file": .obstructed]
        let before = tree()
        let error = #expect(throws: DiskURLCache.Error.self) { try DiskURLCache.Inspector(directory: place) }
        #expect(error?.code == codes[name])
        #expect(tree() == before)
    }

    @Test func removedRecordsAreGoneForTheProgramThatUsesTheCache() throws {
        let cache = makeCache()
        let inspector = try DiskURLCache.Inspector(directory: directory)
        let victims = try inspector.records().filter { $0.url?.hasSuffix("/1") == true }
        #expect(inspector.remove(victims) == 1)
        #expect(cache.cachedResponse(for: Responses.request("/1")) == nil)
        #expect(cache.cachedResponse(for: Responses.request("/2"))?.data == Data("2222".utf8))
        #expect(try inspector.records().count == 2)
    }

    @Test func aRecordThatWasReplacedSinceItWasListedStays() throws {
        let cache = makeCache(entries: 1)
        let inspector = try DiskURLCache.Inspector(directory: directory)
        let listed = try inspector.records()
        cache.storeCachedResponse(Responses.cached(Responses.url("/0"), "new"), for: Responses.request("/0"))
        cache.flush()
        #expect(inspector.remove(listed) == 0)
        #expect(cache.cachedResponse(for: Responses.request("/0"))?.data == Data("new".utf8))
    }

    @Test func trimmingKeepsTheDirectoryWithinTheBytesAndPinnedEntriesLast() throws {
        let cache = makeCache(entries: 40, bodyLength: 10_000)
        #expect(cache.setPinned(true, for: Responses.request("/0")))
        cache.flush()
        let inspector = try DiskURLCache.Inspector(directory: directory)
        let before = try inspector.records().reduce(inspector.overheadOnDisk) { $0 + $1.bytesOnDisk }
        let result = try inspector.trim(toBytes: before / 2)
        #expect(result.removed > 10)
        #expect(result.bytesOnDisk <= before / 2)
        #expect(cache.cachedResponse(for: Responses.request("/0")) != nil)
    }

    /// The space that only damaged records take costs no intact one.
    @Test func trimmingRemovesDamagedRecordsFirst() throws {
        let cache = makeCache(entries: 20, bodyLength: 10_000)
        cache.store.disk?.close()
        let inspector = try DiskURLCache.Inspector(directory: directory)
        let records = try inspector.records()
        for record in records.prefix(10) {
            let file = try FileHandle(forWritingTo: directory.appendingPathComponent("records/" + record.fileName))
            try file.seekToEnd()
            try file.write(contentsOf: Data([0]))
            try file.close()
        }
        let before = try inspector.records().reduce(inspector.overheadOnDisk) { $0 + $1.bytesOnDisk }
        let result = try inspector.trim(toBytes: before * 3 / 4)
        #expect(result.bytesOnDisk <= before * 3 / 4)
        let left = Set(try inspector.records().filter { $0.problem == nil }.map(\.fileName))
        #expect(left == Set(records.dropFirst(10).map(\.fileName)))
    }

    @Test func trimmingRemovesNoMoreThanItMust() throws {
        // Many small entries: their index takes as much as a tenth of them, and shrinks with them.
        let cache = makeCache(entries: 600, bodyLength: 10)
        cache.store.disk?.close()
        let inspector = try DiskURLCache.Inspector(directory: directory)
        let before = try inspector.records().reduce(inspector.overheadOnDisk) { $0 + $1.bytesOnDisk }
        let target = before * 3 / 4
        let result = try inspector.trim(toBytes: target)
        #expect(result.bytesOnDisk <= target)
        #expect(result.bytesOnDisk > target - 16_384)
    }

    @Test func trimmingToNothingRemovesAllAndTheFolderThatHasGrown() throws {
        let cache = makeCache(entries: 300, bodyLength: 10)
        cache.store.disk?.close()
        let inspector = try DiskURLCache.Inspector(directory: directory)
        let folder = directory.appendingPathComponent("records").path
        let grown = try FileManager.default.attributesOfItem(atPath: folder)[.size] as? Int ?? 0
        let result = try inspector.trim(toBytes: 0)
        #expect(result.removed == 300)
        #expect(try inspector.records().isEmpty)
        #expect(result.bytesOnDisk == inspector.overheadOnDisk)
        #expect(try FileManager.default.attributesOfItem(atPath: folder)[.size] as? Int ?? 0 < grown)
    }

    /// Also where it heard of the last removal before the folder was replaced.
    @Test(arguments: [false, true]) func aCacheInUseGoesOnAfterItWasTrimmedToNothing(hearsEarly: Bool) throws {
        let cache = makeCache()
        let inspector = try DiskURLCache.Inspector(directory: directory)
        let result = try inspector.trim(toBytes: 0) { done, total in
            if hearsEarly, done == total { #expect(!cache.contains(Responses.request("/1"))) }
        }
        #expect(result.removed == 3)
        #expect(cache.cachedResponse(for: Responses.request("/1")) == nil)
        cache.storeCachedResponse(Responses.cached(Responses.url("/new"), "new"), for: Responses.request("/new"))
        cache.flush()
        #expect(cache.cachedResponse(for: Responses.request("/new"))?.data == Data("new".utf8))
        #expect(try DiskURLCache.Inspector(directory: directory).records().count == 1)
    }

    @Test func anIndexIsMadeAnewFromTheRecords() throws {
        makeCache().store.disk?.close()
        let index = directory.appendingPathComponent("index.plist")
        try Data("garbage".utf8).write(to: index)
        let inspector = try DiskURLCache.Inspector(directory: directory)
        #expect(!inspector.hasValidIndex && inspector.hasIndex)
        try FileManager.default.removeItem(at: index)
        #expect(!inspector.hasValidIndex && !inspector.hasIndex)
        #expect(try inspector.rebuildIndex() == 3)
        #expect(inspector.hasValidIndex)
        #expect(try inspector.records().count == 3)
    }

    @Test func theIndexOfACacheInUseIsLeftToItsProgram() throws {
        let cache = makeCache()
        let inspector = try DiskURLCache.Inspector(directory: directory)
        let error = #expect(throws: DiskURLCache.Error.self) { try inspector.rebuildIndex() }
        #expect(error?.code == .inUse)
        withExtendedLifetime(cache) {}
    }
}
