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
        #expect(entries.compactMap(\.storedURL) == ["https://example.com/a", "https://example.com/b"])
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
        #expect(DiskURLCache.EventLog.entries(in: file).last?.storedURL == "https://example.com/199")
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
        _ outcome: CacheLoadReport.Outcome, notStored: CacheNotStoredReason? = nil, isCollapsed: Bool = false
    ) -> CacheEvent {
        .load(
            CacheLoadReport(
                url: URL(string: "https://example.com/a?b=%20c"), method: "GET", outcome: outcome, status: 200,
                bytes: 4,
                age: 7, duration: 0.5, startedAt: Date(timeIntervalSince1970: 0.5), requestedAt: nil, respondedAt: nil,
                isStored: notStored == nil, notStoredReason: notStored, isCollapsed: isCollapsed, error: nil,
                cacheStatus: "c; hit"))
    }

    private static let refusals: [CacheNotStoredReason] =
        [
            .noKey, .refused, .tooLarge(bytes: 30, limit: 20), .removedMeanwhile, .diskTooSlow,
            .diskFailed(errno: ENOSPC),
            .diskFailed(errno: 0),
        ] + CacheStorageRefusal.allCases.map { .http($0) }

    private static let events: [CacheEvent] = {
        let url = URL(string: "https://example.com/a")
        let layers: [CacheLayer] = [.memory, .disk, .fallback]
        let failures: [CacheFailureReason] =
            [.cancelled, .network, .redirects] + CacheMissReason.allCases.map { .notAllowed($0) }
        var events = layers.flatMap { layer in
            [load(.hit(layer)), load(.revalidated(layer)), load(.staleHit(layer, .offline))]
        }
        events += CacheStaleReason.allCases.map { load(.staleHit(.disk, $0)) }
        events += CacheMissReason.allCases.map { load(.miss($0)) }
        events += CacheBypassReason.allCases.map { load(.bypass($0)) }
        events += failures.map { load(.failed($0)) }
        events += refusals.map { .notStored(url: url, reason: $0) }
        // The length of a load's body is not that of what was too large.
        events += refusals.filter { if case .tooLarge = $0 { false } else { true } }.map {
            load(.miss(.notStored), notStored: $0)
        }
        events += CacheError.Code.allCases.map { .problem(CacheError($0, path: "/x", errno: EACCES)) }
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
            let entry = DiskURLCache.EventLog.Entry(event, at: Date(timeIntervalSince1970: 1))
            let back = try JSONDecoder().decode(
                DiskURLCache.EventLog.Entry.self, from: JSONEncoder().encode(entry))
            #expect(back.date == entry.date)
            #expect(dumped(back.event) == dumped(event))
        }
    }

    /// The spelling of the file: tools and earlier files have it.
    @Test func theSpellingStays() throws {
        func line(_ event: CacheEvent) throws -> [String: String] {
            let data = try JSONEncoder().encode(DiskURLCache.EventLog.Entry(event, at: Date(timeIntervalSince1970: 1)))
            return try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any]).mapValues { "\($0)" }
        }
        let miss = try line(Self.load(.miss(.variantNotStored), notStored: .http(.responseNoStore)))
        #expect(miss["event"] == "load" && miss["outcome"] == "miss" && miss["reason"] == "variant-not-stored")
        #expect(miss["notStored"] == "no-store" && miss["url"] == "https://example.com/a?b=%20c" && miss["at"] == "1")
        let stale = try line(Self.load(.staleHit(.disk, .staleWhileRevalidate)))
        #expect(stale["outcome"] == "stale" && stale["layer"] == "disk" && stale["reason"] == "stale-while-revalidate")
        #expect(try line(Self.load(.bypass(.noKey)))["reason"] == "no-key")
        #expect(try line(Self.load(.failed(.notAllowed(.notStored))))["reason"] == "not-stored")
        #expect(try line(.notStored(url: nil, reason: .tooLarge(bytes: 3, limit: 2)))["notStored"] == "too-large")
        // As a version with fewer fields wrote it.
        let old = Data(#"{"event":"load","at":1,"outcome":"miss","reason":"stale"}"#.utf8)
        let entry = try JSONDecoder().decode(DiskURLCache.EventLog.Entry.self, from: old)
        guard case .load(let load) = entry.event else { return #expect(Bool(false), "no load") }
        #expect(load.outcome == .miss(.stale) && load.notStoredReason == nil)
    }

    @Test(arguments: [
        #"{"event":"load","at":1,"outcome":"miss","reason":"of another version"}"#, #"{"event":"else","at":1}"#,
        #"{"event":"notStored","at":1}"#, #"{"event":"problem","at":1,"code":"else"}"#, "{}",
    ]) func whatIsNoEventIsRefused(_ line: String) {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(DiskURLCache.EventLog.Entry.self, from: Data(line.utf8))
        }
    }

    /// What a person reads: a part of a sentence, another one for each reason.
    @Test func eachReasonHasWordsOfItsOwn() {
        func check(_ words: [String]) {
            #expect(Set(words).count == words.count)
            for text in words { #expect(text.contains(" ") && !text.hasSuffix("."), "\(text)") }
        }
        check(CacheMissReason.allCases.map(\.description))
        check(CacheStaleReason.allCases.map(\.description))
        check(CacheBypassReason.allCases.map(\.description))
        check(Self.refusals.map(\.description))
        check([CacheFailureReason.cancelled, .network, .redirects, .notAllowed(.stale)].map(\.description))
    }
}

extension DiskURLCache.EventLog.Entry {
    fileprivate var storedURL: String? {
        if case .stored(let url, _, _) = event { url?.absoluteString } else { nil }
    }
}

// For tests only: a program has no use for the list.
extension CacheMissReason: CaseIterable {
    public static let allCases: [Self] = [
        .notStored, .variantNotStored, .stale, .mustRevalidate, .requestDirective, .requestNoStore, .methodNotCached,
        .reloadPolicy, .revalidatePolicy, .unsupportedRange, .rangeNotHeld, .precondition, .mismatchedAnswer,
    ]
}
extension CacheStaleReason: CaseIterable {
    public static let allCases: [Self] = [.maxStale, .staleWhileRevalidate, .staleIfError, .offline, .cachePolicy]
}
extension CacheBypassReason: CaseIterable {
    public static let allCases: [Self] = [.upload, .download, .noKey, .unknownSession]
}
extension CacheStorageRefusal: CaseIterable {
    public static let allCases: [Self] = [
        .method, .requestNoStore, .responseNoStore, .statusNotUnderstood, .statusNotCacheable, .notReusable,
        .varyAsterisk, .partialContent, .notModified, .malformed,
    ]
}
extension CacheError.Code: CaseIterable {
    public static let allCases: [Self] = [
        .notAFileURL, .directoryUnavailable, .notFound, .obstructed, .notACache, .notReadable, .notWritable, .io,
        .inUse,
        .loaderMissing,
    ]
}
