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
        #expect(entries.compactMap { storedURL($0.event) } == ["https://example.com/a", "https://example.com/b"])
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
        #expect(
            DiskURLCache.EventLog.entries(in: file).last.flatMap { storedURL($0.event) } == "https://example.com/199")
    }

    /// Others than this log remove and rename: a user, a tool, another process with a log on the same file.
    @Test(arguments: ["removed", "renamed", "replaced"]) func aFileThatIsTakenAwayIsBegunAnew(how: String) throws {
        let file = scratch.appending("log")
        let log = DiskURLCache.EventLog(cache, file: file)
        store("/a")
        log.flush()
        if how == "removed" {
            try FileManager.default.removeItem(at: file)
        } else {
            try FileManager.default.moveItem(at: file, to: scratch.appending("log.1"))
        }
        if how == "replaced" { try Data().write(to: file) }
        store("/b")
        log.flush()
        let expected = (how == "removed" ? ["/b"] : ["/a", "/b"]).map { "https://example.com" + $0 }
        let entries = DiskURLCache.EventLog.entries(in: file)
        #expect(entries.compactMap { storedURL($0.event) } == expected)
        #expect(try Data(contentsOf: file).count > 0)
    }

    @Test func aFileThatCannotBeRenamedStaysWithinItsLimit() throws {
        let file = scratch.appending("log")
        try FileManager.default.createDirectory(
            at: scratch.appending("log.1/full"), withIntermediateDirectories: true)
        let log = DiskURLCache.EventLog(cache, file: file, limit: 4_096)
        for number in 0..<200 { store("/\(number)") }
        log.flush()
        #expect(try Data(contentsOf: file).count <= 4_096)
        #expect(
            DiskURLCache.EventLog.entries(in: file).last.flatMap { storedURL($0.event) } == "https://example.com/199")
    }

    @Test func whatWaitsForASlowDiskIsBounded() throws {
        let file = scratch.appending("log")
        let log = DiskURLCache.EventLog(cache, file: file)
        log.queue.suspend()
        let most = DiskURLCache.EventLog.waitingLimit
        for _ in 0..<most + 50 { cache.hub.emit(.removedDamagedRecord) }
        log.queue.resume()
        log.flush()
        #expect(DiskURLCache.EventLog.entries(in: file).count == most)
        store("/later")
        log.flush()
        #expect(DiskURLCache.EventLog.entries(in: file).count == most + 1)
    }

    /// Tools add these numbers up and make dates of them.
    @Test(arguments: [
        "\"at\":1e300", "\"at\":-1e300", "\"at\":1,\"bytes\":9223372036854775807", "\"at\":1,\"bytes\":-1",
        "\"at\":1,\"milliseconds\":1e300",
    ])
    func numbersThatNoEventHasArePassedOver(numbers: String) {
        let lines = Data(
            """
            {"event":"load","outcome":"hit","layer":"memory",\(numbers)}
            {"event":"load","outcome":"hit","layer":"memory","at":1,"bytes":5}

            """.utf8)
        #expect(DiskURLCache.EventLog.entries(from: lines).count == 1)
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

    private static func load(
        _ outcome: CacheLoadReport.Outcome, notStored: CacheNotStoredReason? = nil, isCollapsed: Bool = false,
        error: URLError? = nil
    ) -> CacheEvent {
        .load(
            CacheLoadReport(
                url: URL(string: "https://example.com/a?b=%20c"), method: "GET", outcome: outcome, status: 200,
                bytes: 4,
                age: 7, duration: 0.5, startedAt: Date(timeIntervalSince1970: 0.5), requestedAt: nil, respondedAt: nil,
                isStored: notStored == nil, notStoredReason: notStored, isCollapsed: isCollapsed, error: error,
                cacheStatus: "c; hit"))
    }

    private static let refusals: [CacheNotStoredReason] = [
        .noKey, .refused, .tooLarge(bytes: 30, limit: 20), .removedMeanwhile, .diskTooSlow, .diskFailed(errno: ENOSPC),
        .diskFailed(errno: 0), .methodNotCached, .forOneUser, .setsCookie, .authorized, .requestNoStore,
        .responseNoStore, .statusNotUnderstood,
        .statusNotCacheable, .notReusable, .varyAsterisk, .partialContent, .notModified, .malformed,
    ]
    private static let misses: [CacheMissReason] = [
        .notStored, .variantNotStored, .stale, .mustRevalidate, .requestDirective, .requestNoStore, .methodNotCached,
        .cachePolicy, .unsupportedRange, .rangeNotHeld, .precondition, .mismatchedAnswer,
    ]
    private static let allowances: [CacheStaleReason] = [
        .maxStale, .staleWhileRevalidate, .staleIfError, .offline, .cachePolicy,
    ]
    private static let bypasses: [CacheBypassReason] = [.upload, .download, .noKey, .unknownSession]
    private static let codes: [CacheError.Code] = [
        .notAFileURL, .obstructed, .notACache, .notReadable, .notWritable, .io, .damaged, .foreign, .inUse,
        .loaderMissing, .otherOwner, .writableByOthers, .otherSettings, .sharedStorage,
    ]

    private static let events: [CacheEvent] = {
        let url = URL(string: "https://example.com/a")
        let layers: [CacheLayer] = [.memory, .disk, .fallback]
        var events = layers.flatMap { layer in
            [load(.hit(layer)), load(.revalidated(layer)), load(.staleHit(layer, .offline))]
        }
        events += allowances.map { load(.staleHit(.disk, $0)) }
        events += misses.map { load(.miss($0)) }
        events += bypasses.map { load(.bypass($0)) }
        events += misses.map { load(.notAllowed($0)) }
        events += [load(.failed), load(.failed, error: URLError(.timedOut))]
        events += refusals.map { .notStored(url: url, reason: $0) }
        // The length of a load's body is not that of what was too large.
        events += refusals.filter { if case .tooLarge = $0 { false } else { true } }.map {
            load(.miss(.notStored), notStored: $0)
        }
        events += codes.map { .problem(CacheError($0, path: "/x", errno: EACCES)) }
        events += [
            load(.hit(.memory), isCollapsed: true), .stored(url: url, bytes: 3, inMemoryOnly: true),
            .stored(url: nil, bytes: 3, inMemoryOnly: false), .userInfoKeptInMemory(url: url, keys: ["a", "b"]),
            .evicted(entries: 2, bytes: 9), .removedDamagedRecord, .rebuiltIndex(wasDamaged: true),
            .rebuiltIndex(wasDamaged: false),
        ]
        return events
    }()

    /// All that a value holds, as text: events cannot be compared, since a load may hold an error.
    private func dumped(_ event: CacheEvent) -> String {
        var text = ""
        dump(event, to: &text)
        return text
    }

    /// Each event, with each reason.
    @Test func eachEventComesBackAsItWas() throws {
        for event in Self.events {
            let line = try JSONEncoder().encode(EventLine(event, at: 1))
            let back = try #require(DiskURLCache.EventLog.entries(from: line).first)
            #expect(back.date == Date(timeIntervalSince1970: 1))
            #expect(dumped(back.event) == dumped(event))
        }
    }

    /// The spelling of the file: tools and earlier files have it.
    @Test func theSpellingStays() throws {
        func line(_ event: CacheEvent) throws -> [String: String] {
            let data = try JSONEncoder().encode(EventLine(event, at: 1))
            return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any]).mapValues { "\($0)" }
        }
        let miss = try line(Self.load(.miss(.variantNotStored), notStored: .responseNoStore))
        #expect(miss["event"] == "load" && miss["outcome"] == "miss" && miss["reason"] == "variant-not-stored")
        #expect(miss["notStored"] == "no-store" && miss["url"] == "https://example.com/a?b=%20c" && miss["at"] == "1")
        let stale = try line(Self.load(.staleHit(.disk, .staleWhileRevalidate)))
        #expect(stale["outcome"] == "stale" && stale["layer"] == "disk" && stale["reason"] == "stale-while-revalidate")
        #expect(try line(Self.load(.bypass(.noKey)))["reason"] == "no-key")
        #expect(try line(Self.load(.notAllowed(.notStored)))["reason"] == "not-stored")
        let failed = try line(Self.load(.failed, error: URLError(.timedOut)))
        #expect(failed["outcome"] == "failed" && failed["urlError"] == "-1001" && failed["reason"] == nil)
        #expect(try line(.notStored(url: nil, reason: .tooLarge(bytes: 3, limit: 2)))["notStored"] == "too-large")
        // As a version with fewer fields wrote it.
        let old = Data(#"{"event":"load","at":1,"outcome":"miss","reason":"stale"}"#.utf8)
        guard case .load(let load)? = DiskURLCache.EventLog.entries(from: old).first?.event else {
            return #expect(Bool(false), "no load")
        }
        #expect(load.outcome == .miss(.stale) && load.notStoredReason == nil)
    }

    @Test(arguments: [
        #"{"event":"load","at":1,"outcome":"miss","reason":"of another version"}"#, #"{"event":"else","at":1}"#,
        #"{"event":"notStored","at":1}"#, #"{"event":"problem","at":1,"code":"else"}"#, "{}",
    ]) func whatIsNoEventIsPassedOver(_ line: String) {
        #expect(DiskURLCache.EventLog.entries(from: Data(line.utf8)).isEmpty)
    }

    /// What a person reads: a part of a sentence, another one for each reason.
    @Test func eachReasonHasWordsOfItsOwn() {
        func check(_ words: [String]) {
            #expect(Set(words).count == words.count)
            for text in words { #expect(text.contains(" ") && !text.hasSuffix("."), "\(text)") }
        }
        check(Self.misses.map(\.description))
        check(Self.allowances.map(\.description))
        check(Self.bypasses.map(\.description))
        check(Self.refusals.map(\.description))
    }
}

private func storedURL(_ event: CacheEvent) -> String? {
    if case .stored(let url, _, _) = event { url?.absoluteString } else { nil }
}
