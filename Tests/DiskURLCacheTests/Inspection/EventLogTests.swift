import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite("An event log tells another process what a cache does", .fewAtATime)
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

    @Test(arguments: [true, false]) func theLogKeepsURLsAsTheCacheDoes(keepsURLs: Bool) async throws {
        var configuration = DiskURLCache.Configuration(directory: scratch.appending("kept"))
        configuration.keepsURLs = keepsURLs
        configuration.rules = [.init(for: .path("/b/SECRET", host: "example.com"), storage: .never)]
        let cache = DiskURLCache(configuration: configuration)
        let file = scratch.appending("log")
        let log = DiskURLCache.EventLog(cache, file: file)
        let request = Responses.request("/a?token=SECRET")
        cache.storeCachedResponse(Responses.cached(request.url!), for: request)
        cache.removeCachedResponses(urlPrefix: "/account/SECRET")
        cache.hub.emit(.notStored(url: request.url, reason: .refused))
        cache.hub.emit(Self.load(.hit(.memory)))
        cache.hub.emit(.problem(DiskURLCache.Error(.loaderMissing, path: "https://example.com/SECRET")))
        cache.hub.emit(.problem(DiskURLCache.Error(.invalidRule(index: 0), details: "example.com/SECRET")))
        let refused = Responses.request("/b/SECRET")
        cache.storeCachedResponse(Responses.cached(refused.url!), for: refused)
        let network = MemoryTransport { _, exchange in
            exchange.head(200, [:])
            exchange.end()
        }
        _ = try await LoadReader(refused, from: cache, over: network).answer()
        cache.isOffline = true
        await #expect(throws: URLError.self) { try await LoadReader(refused, from: cache, over: network).answer() }
        log.flush()
        let events = DiskURLCache.EventLog.entries(in: file)
        #expect(events.count == 9)
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(text.contains("SECRET") == keepsURLs && text.contains("example") == keepsURLs)
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
        for _ in 0..<most + 50 { cache.hub.emit(.evicted(entries: 1, bytesOnDisk: 0)) }
        log.queue.resume()
        log.flush()
        #expect(DiskURLCache.EventLog.entries(in: file).count == most)
        store("/later")
        log.flush()
        #expect(DiskURLCache.EventLog.entries(in: file).count == most + 1)
    }

    /// Tools add these numbers up and make dates of them.
    @Test(
        arguments: [
            (1e300, 5, 1), (-1e300, 5, 1), (1, Int.max, 1), (1, -1, 1), (1, 5, 1e300),
        ] as [(Double, Int, Double)])
    func numbersThatNoEventHasArePassedOver(at: Double, bytes: Int, duration: Double) throws {
        var lines = Data()
        for (at, bytes, duration) in [(at, bytes, duration), (1, 5, 1)] {
            let load = Self.load(.hit(.memory), bytes: bytes, duration: duration)
            lines += try Self.encoder.encode(DiskURLCache.EventLog.Line(at: at, event: load)) + Data("\n".utf8)
        }
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
        _ outcome: DiskURLCache.Report.Outcome, notStored: DiskURLCache.Reason? = nil, isCollapsed: Bool = false,
        error: URLError? = nil, bytes: Int = 4, duration: Double = 0.5
    ) -> DiskURLCache.Event {
        .load(
            DiskURLCache.Report(
                url: URL(string: "https://example.com/a?b=%20c"), method: "GET", outcome: outcome, status: 200,
                bytes: bytes, age: 7, duration: duration, startedAt: Date(timeIntervalSince1970: 0.5), requestedAt: nil,
                respondedAt: nil,
                isStored: notStored == nil, notStoredReason: notStored, isCollapsed: isCollapsed, error: error,
                cacheStatus: "c; hit"))
    }

    private static let encoder: JSONEncoder = {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .secondsSince1970
        return encoder
    }()

    private static let reasons: [DiskURLCache.Reason] = [
        .notInCache, .variantNotInCache, .stale, .noCache, .requestDirective, .requestNoStore, .cachePolicy,
        .unsupportedRange,
        .rangeNotHeld, .precondition, .mismatchedAnswer, .maxStale, .staleWhileRevalidate, .staleIfError, .offline,
        .anyAge,
        .mustRevalidate, .noStaleIfError, .staleIfErrorOver, .storedError, .upload, .download, .noKey,
        .notHTTP,
        .dotSegments, .streamedBody, .bodyNotKeyed, .methodNotCached, .keyPolicy, .never, .refused, .credentials,
        .tooLarge(bytes: 30, limit: 20), .removedMeanwhile, .diskFailed(errno: ENOSPC),
        .diskFailed(errno: 0), .private,
        .setCookie, .authorization, .cookie, .noStore, .statusNotUnderstood, .statusNotCacheable,
        .aboutRequestOnly, .aboutSending, .notReusable,
        .varyAsterisk, .varyUnseen, .partialContent, .notModified, .malformed, .userInfo(keys: ["a"]),
    ]
    private static let codes: [DiskURLCache.Error.Code] = [
        .notAFileURL, .obstructed, .notACache, .notReadable, .notWritable, .io, .damaged, .foreign, .inUse,
        .loaderMissing, .refusedBySystem, .otherOwner, .writableByOthers, .settingsWithoutEffect, .sharedStorage,
        .sharedKeyPolicy,
        .invalidRule(index: 1),
        .invalidPattern,
    ]

    private static let events: [DiskURLCache.Event] = {
        let url = URL(string: "https://example.com/a")
        let layers: [DiskURLCache.Layer] = [.memory, .disk, .fallback]
        var events = layers.flatMap { layer in
            [load(.hit(layer)), load(.revalidated(layer)), load(.staleHit(layer, because: .offline))]
        }
        for reason in reasons {
            events += [
                load(.staleHit(.disk, because: reason)),
                load(.miss(reason), notStored: reason == .refused ? .stale : .refused),
                load(.expired(reason)), load(.bypass(reason)),
                load(.notAllowed(reason)), .notStored(url: url, reason: reason),
            ]
        }
        events += [load(.failed), load(.failed, error: URLError(.timedOut))]
        events += codes.map { .problem(DiskURLCache.Error($0, path: "/x", errno: EACCES)) }
        events += [
            load(.hit(.memory), isCollapsed: true), .stored(url: url, bytes: 3, inMemoryOnly: true),
            .stored(url: nil, bytes: 3, inMemoryOnly: false),
            .evicted(entries: 2, bytesOnDisk: 9),
        ]
        return events
    }()

    @Test func eachCodeOfAnErrorIsListed() throws {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../../..")
        let file = root.appendingPathComponent("Sources/DiskURLCache/Errors/Error.swift")
        let source = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "/// The kind of problem.")[
            1]
        let cases = source.components(separatedBy: "\n").filter {
            $0.hasPrefix(String(repeating: " ", count: 12) + "case ")
        }
        #expect(cases.count == Self.codes.count)
    }

    /// Each problem ends with a remedy: an imperative, or the cache's own act.
    @Test(arguments: codes, ["", "/x"]) func eachProblemSaysWhatToDo(_ code: DiskURLCache.Error.Code, path: String) {
        // The remedy of a rule is in the texts of `RuleCheck` and `URLPattern`; see `RulesTests`.
        if case .invalidRule = code { return }
        // Of settings without a folder it is in the text of those who report them.
        if code == .settingsWithoutEffect, path.isEmpty { return }
        for errno in [0, EACCES, ENOENT] {
            let text = DiskURLCache.Error(code, path: path, errno: errno, details: "").description
            let remedy = text.split(separator: ".").contains { sentence in
                ["Name", "Give", "Move", "Look", "Set", "Use", "End", "Make"].contains {
                    sentence.trimmingCharacters(in: .whitespaces).hasPrefix($0)
                } || [": move", ": make", "look at", "A session of makeSession"].contains { sentence.contains($0) }
            }
            #expect(remedy, "\(text)")
        }
    }

    /// All that a value holds, as text: events cannot be compared, since a load may hold an error.
    private func dumped(_ event: DiskURLCache.Event) -> String {
        var text = ""
        dump(event, to: &text)
        return text
    }

    /// Each event, with each reason.
    @Test func eachEventComesBackAsItWas() throws {
        for event in Self.events {
            let line = try Self.encoder.encode(DiskURLCache.EventLog.Line(at: 1, event: event))
            let back = try #require(DiskURLCache.EventLog.entries(from: line).first)
            #expect(back.date == Date(timeIntervalSince1970: 1))
            #expect(dumped(back.event) == dumped(event))
        }
    }

    @Test(arguments: [
        #"{"at":1,"event":{"load":{"_0":{}}}}"#, #"{"event":{"else":{}},"at":1}"#,
        #"{"event":{"notStored":{}},"at":1}"#, "{}",
    ]) func whatIsNoEventIsPassedOver(_ line: String) {
        #expect(DiskURLCache.EventLog.entries(from: Data(line.utf8)).isEmpty)
    }

    /// A link in the log's place is not followed, and a file that others may read is closed to them.
    @Test(arguments: ["symbolic", "hard", "open"]) func theLogIsAFileOfItsOwner(_ kind: String) throws {
        let (file, other) = (scratch.appending("log"), scratch.appending("other"))
        try Data("mine\n".utf8).write(to: kind == "open" ? file : other)
        switch kind {
        case "symbolic": try FileManager.default.createSymbolicLink(at: file, withDestinationURL: other)
        case "hard": try FileManager.default.linkItem(at: other, to: file)
        default: try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: file.path)
        }
        let log = DiskURLCache.EventLog(cache, file: file)
        store("/a")
        log.flush()
        if kind == "open" {
            let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? NSNumber
            #expect(mode?.intValue == 0o600 && DiskURLCache.EventLog.entries(in: file).count == 1)
        } else {
            #expect(try Data(contentsOf: other) == Data("mine\n".utf8))
        }
    }

    /// Programs and `Cache-Status` compare codes; a person reads words, other ones for each reason.
    @Test func eachReasonHasACodeAndWordsOfItsOwn() {
        #expect(Set(Self.reasons.map(\.description)).count == Self.reasons.count)
        #expect(Set(Self.reasons.map(\.code)).count == Self.reasons.count - 1, "the disk fails in two ways")
        for reason in Self.reasons {
            #expect(FieldSyntax.isToken(reason.code) && reason.code == reason.code.lowercased())
            #expect(reason.description.contains(" ") && !reason.description.hasSuffix("."), "\(reason)")
            if let advice = reason.advice { #expect(advice.hasSuffix("."), "\(reason)") }
        }
    }
}

private func storedURL(_ event: DiskURLCache.Event) -> String? {
    if case .stored(let url, _, _) = event { url?.absoluteString } else { nil }
}
