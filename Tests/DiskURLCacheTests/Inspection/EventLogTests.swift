import Foundation
import Testing

@testable import DiskURLCache

@Suite("An event log tells another process what a cache does")
struct EventLogTests {
    private let scratch: ScratchDirectory
    private let cache: DiskURLCache

    init() throws {
        scratch = try ScratchDirectory()
        cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: scratch.appending("cache"))
        cache.flush()
    }

    private func store(_ path: String) {
        cache.storeCachedResponse(Responses.cached(Responses.url(path)), for: Responses.request(path))
    }

    @Test func eachEventIsALineThatCanBeReadBack() throws {
        let file = scratch.appending("log")
        let log = DiskURLCache.EventLog(cache, file: file)
        store("/a")
        store("/b")
        log.flush()
        let entries = DiskURLCache.EventLog.entries(in: file)
        #expect(
            entries.filter { $0.event == "stored" }.map(\.url) == ["https://example.com/a", "https://example.com/b"])
    }

    @Test func theLogLiesInTheCacheForItsOwnerAlone() throws {
        let log = DiskURLCache.EventLog(cache)
        store("/a")
        log.flush()
        let path = scratch.appending("cache/\(DiskURLCache.EventLog.fileName)").path
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber
        #expect(mode?.intValue == 0o600)
    }

    @Test func nothingIsWrittenOnceTheLogIsReleased() throws {
        let file = scratch.appending("log")
        do {
            let log = DiskURLCache.EventLog(cache, file: file)
            store("/a")
            log.flush()
        }
        let length = try Data(contentsOf: file).count
        store("/b")
        cache.flush()
        #expect(try Data(contentsOf: file).count == length)
    }

    @Test func aLogBeyondItsLimitIsBegunAnewAndKeepsTheOneBefore() throws {
        let file = scratch.appending("log")
        let log = DiskURLCache.EventLog(cache, file: file, limit: 4_096)
        for number in 0..<200 { store("/\(number)") }
        log.flush()
        for path in [file.path, file.path + ".1"] {
            #expect(try #require(FileManager.default.contents(atPath: path)).count <= 4_096)
        }
        #expect(DiskURLCache.EventLog.entries(in: file).last?.url == "https://example.com/199")
    }

    @Test func aDamagedLineIsPassedOver() throws {
        let file = scratch.appending("log")
        let log = DiskURLCache.EventLog(cache, file: file)
        store("/a")
        log.flush()
        let handle = try FileHandle(forWritingTo: file)
        try handle.seekToEnd()
        try handle.write(contentsOf: Data("{\"event\": \n".utf8))
        try handle.close()
        store("/b")
        log.flush()
        #expect(DiskURLCache.EventLog.entries(in: file).count == 2)
    }

    @Test func aLoadTellsWhyItsAnswerWasNotStored() throws {
        let report = DiskURLCache.LoadReport(
            url: "https://example.com/a", method: "GET", outcome: .miss(reason: "not-stored"), status: 200, bytes: 4,
            age: nil, duration: 0.5, startedAt: Date(), requestedAt: nil, respondedAt: nil, isStored: false,
            notStoredReason: .http("no-store"), isCollapsed: false, error: nil, cacheStatus: "")
        let entry = DiskURLCache.EventLog.Entry(.load(report), at: 1)
        #expect(entry.notStored == "no-store")
        let back = try JSONDecoder().decode(DiskURLCache.EventLog.Entry.self, from: JSONEncoder().encode(entry))
        #expect(back == entry)
        // As versions before wrote it.
        let old = Data(#"{"event":"load","at":1}"#.utf8)
        #expect(try JSONDecoder().decode(DiskURLCache.EventLog.Entry.self, from: old).notStored == nil)
    }
}
