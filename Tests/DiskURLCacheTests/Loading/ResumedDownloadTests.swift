import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `file(for:at:resuming:)`: a download that broke off goes on, and its file is always that of one response.
@Suite(.fewAtATime) struct ResumedDownloadTests {
    /// What the origin has, and does to each request.
    private struct Origin {
        var body = ResumedDownloadTests.first
        var tag = "\"1\""
        var fields = OriginFields()
        /// After how many bytes of the answer's body the connection ends, for the requests to come; then none is cut.
        var cuts: [Int] = []
        /// Answers a range in its own way; nil: rightly.
        var lie: (@Sendable (Int, OriginResponse) -> OriginResponse)?
        var ranges: [String?] = []
        var onRequest: (@Sendable () -> Void)?
        /// Where `/moved` leads.
        var target = "/a"
    }

    private static let first = testBody(1, length: 1_000_001)
    private static let second = testBody(2, length: 900_003)
    private let cache: DiskURLCache
    private let scratch: ScratchDirectory
    private let folder: URL
    private let file: URL
    private let origin: OriginServer
    private let state = Shared()

    private final class Shared: Sendable { let value = Mutex(Origin()) }

    init() throws {
        scratch = try ScratchDirectory("resumed")
        cache = DiskURLCache(in: scratch, clock: ManualClock(), memory: 4 << 20, disk: 64 << 20)
        folder = scratch.url.appendingPathComponent("files")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        file = folder.appendingPathComponent("archive.tar")
        origin = try OriginServer { [state] request in state.value.withLock { Self.answer(request, &$0) } }
    }

    private static func answer(_ request: OriginRequest, _ state: inout Origin) -> OriginResponse {
        if request.path == "/moved" { return OriginResponse(status: 302, fields: ["Location": state.target]) }
        let range = request.fields["Range"]
        state.ranges.append(range)
        state.onRequest?()
        var answer = OriginResponse(fields: ["Cache-Control": "max-age=60", "ETag": state.tag], body: state.body)
        for field in state.fields.fields { answer.fields.set(field.name, field.value) }
        if !state.cuts.isEmpty { answer.ending = .cutBody(after: state.cuts.removeFirst()) }
        guard let start = range.flatMap({ Int($0.dropFirst("bytes=".count).dropLast()) }) else { return answer }
        if let lie = state.lie { return lie(start, answer) }
        return request.fields["If-Range"] == state.tag ? rest(from: start, of: answer) : answer
    }

    private static func rest(from start: Int, of whole: OriginResponse) -> OriginResponse {
        var answer = whole
        answer.status = 206
        answer.fields.set("Content-Range", "bytes \(start)-\(whole.body.count - 1)/\(whole.body.count)")
        answer.body = Data(whole.body.dropFirst(start))
        return answer
    }

    private var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted()
    }

    private func load(_ path: String = "/a") async throws -> (response: HTTPURLResponse, report: DiskURLCache.Report) {
        try await cache.file(for: URLRequest(url: origin.url(path)), at: file, replacingFile: true, resuming: true)
    }

    private func fails(_ path: String = "/a") async {
        await #expect(throws: URLError.self) { _ = try await load(path) }
        #expect(names == [".archive.tar.partial", ".archive.tar.partial.json"])
    }

    private func change(_ change: (inout Origin) -> Void) { state.value.withLock(change) }
    /// What the origin was asked for: all of it, or the rest. Foundation may send a request twice, if its connection
    /// had just been closed.
    private var asked: [String] {
        state.value.withLock { $0.ranges }.reduce(into: []) { asked, range in
            let kind = range == nil ? "all" : "rest"
            if asked.last != kind { asked.append(kind) }
        }
    }
    private var content: Data? { try? Data(contentsOf: file) }

    @Test(arguments: ["/a", "/moved"])
    func theRestIsAskedForUntilTheFileIsWholeAndTheWholeIsStored(_ path: String) async throws {
        change { $0.cuts = [1, 300_000, 65_536] }
        for _ in 0..<3 { await fails(path) }
        let progress = Progress(totalUnitCount: 0)
        let (response, report) = try await cache.file(
            for: URLRequest(url: origin.url(path)), at: file, resuming: true, progress: progress)
        #expect(content == Self.first && names == ["archive.tar"])
        #expect(response.statusCode == 200 && response.value(forHTTPHeaderField: "Content-Range") == nil)
        #expect(response.value(forHTTPHeaderField: "Content-Length") == "1000001")
        #expect(progress.isFinished && progress.completedUnitCount == 1_000_001 && report.status == 206)
        #expect(asked == ["all", "rest"])
        cache.flush()
        let stored = try await cache.data(from: origin.url(path))
        #expect(stored.data == Self.first && stored.report.outcome == .hit(.disk))
    }

    #if canImport(FoundationNetworking)
        /// No number of a server ends the process. (Foundation's own loader traps at this one.)
        @Test func aLengthThatIsNoneIsCountedAsItIs() async throws {
            let transport = ClosureTransport { request, exchange in
                let isRest = request.value(forHTTPHeaderField: "Range") != nil
                var fields = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
                fields["Content-Length"] = isRest ? "9223372036854775807" : "10"
                if isRest { fields["Content-Range"] = "bytes 5-9/10" }
                exchange.head(isRest ? 206 : 200, fields)
                await exchange.piece("12345")
                if !isRest { throw URLError(.networkConnectionLost) }
            }
            let session = try cache.makeSession(configuration: .ephemeral.patient, through: transport)
            defer { session.invalidateAndCancel() }
            let (request, progress) = (Responses.request("/a"), Progress(totalUnitCount: 0))
            for _ in 0..<2 {
                _ = try? await cache.file(for: request, at: file, resuming: true, session: session, progress: progress)
            }
            #expect(content == Data("1234512345".utf8) && progress.completedUnitCount == 10)
        }
    #endif

    /// What a session adds to its requests is part of the key: what is stored without it is another response.
    @Test func whatIsStoredForAnotherSessionIsNotTheWhole() async throws {
        let configuration = URLSessionConfiguration.ephemeral.patient
        configuration.httpAdditionalHeaders = ["Authorization": "Bearer 1"]
        let session = cache.makeSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        change { $0.cuts = [300_000] }
        let request = URLRequest(url: origin.url("/a"))
        await #expect(throws: URLError.self) {
            try await cache.file(for: request, at: file, resuming: true, session: session)
        }
        _ = try await cache.data(for: request)
        #expect(cache.contains(request))
        try await cache.file(for: request, at: file, resuming: true, session: session)
        #expect(content == Self.first && asked == ["all", "rest"])
    }

    /// What is stored is an older version, or a part: none of them answers, and no 304 will come.
    @Test(arguments: ["an older version", "a part"]) func whatIsStoredAndOldKeepsNoDownloadFromGoingOn(what: String)
        async throws
    {
        var request = URLRequest(url: origin.url("/a"))
        if what == "a part" {
            var part = request
            part.setValue("bytes=5-", forHTTPHeaderField: "Range")
            part.setValue("\"1\"", forHTTPHeaderField: "If-Range")
            _ = try await cache.data(for: part)
        } else {
            _ = try await cache.data(for: request)
            change { ($0.tag, $0.body) = ("\"2\"", Self.second) }
            request.cachePolicy = .reloadIgnoringLocalCacheData
        }
        change { ($0.cuts, $0.ranges) = ([500_000], []) }
        let asking = request
        await #expect(throws: URLError.self) { _ = try await cache.file(for: asking, at: file, resuming: true) }
        try await cache.file(for: asking, at: file, resuming: true)
        let expected = what == "a part" ? Self.first : Self.second
        #expect(content == expected && asked == ["all", "rest"])
    }

    /// Tags are unique for one resource only (RFC 9110 §8.8.1).
    @Test func theRestOfAnotherResourceIsNotTaken() async throws {
        change { $0.cuts = [500_000] }
        await fails("/moved")
        let other = testBody(3, length: Self.first.count)
        change { ($0.target, $0.body) = ("/b", other) }
        _ = try await load("/moved")
        #expect(content == other && asked == ["all", "rest", "all"])
        #expect(try await cache.data(from: origin.url("/b")).data == other)
    }

    /// Nothing is evicted for it.
    @Test func aWholeThatIsTooLargeIsNotWrittenIntoTheCache() async throws {
        var settings = DiskURLCache.Configuration(
            memoryCapacity: 0, diskCapacity: 2_200_000, directory: scratch.appending("small"))
        settings.clock = ManualClock().wallClock
        let files = FaultyFileSystem()
        settings.fileSystem = files
        let small = DiskURLCache(configuration: settings)
        for number in 0..<10 {
            let url = Responses.url("/\(number)")
            let response = Responses.cached(
                url, String(repeating: "x", count: 100_000), fields: ["Cache-Control": "max-age=1000"])
            small.storeCachedResponse(response, for: URLRequest(url))
        }
        small.flush()
        let large = testBody(4, length: 1_500_000)
        change { ($0.cuts, $0.body) = ([500_000], large) }
        let request = URLRequest(url: origin.url("/a"))
        await #expect(throws: URLError.self) { try await small.file(for: request, at: file, resuming: true) }
        _ = files.takeCalls()
        try await small.file(for: request, at: file, resuming: true)
        #expect(content == large)
        #expect(!files.takeCalls().contains { $0.name.hasPrefix("incoming-") })
        small.flush()
        for number in 0..<10 { #expect(small.contains(URLRequest(Responses.url("/\(number)")))) }
    }

    @Test func ifTheTargetAppearsNothingStaysBesideIt() async throws {
        change { [file] in $0.onRequest = { try? Data("other".utf8).write(to: file) } }
        await #expect(throws: CocoaError.self) {
            try await cache.file(for: URLRequest(url: origin.url("/a")), at: file, resuming: true)
        }
        #expect(names == ["archive.tar"] && content == Data("other".utf8))
    }

    @Test(arguments: [true, false]) func whatCannotGetItsNameGoesOn(isCut: Bool) async throws {
        if isCut {
            change { $0.cuts = [300_000] }
            await fails()
        }
        let files = FileManager.default
        change { [file] in
            $0.onRequest = { try? FileManager.default.createDirectory(at: file, withIntermediateDirectories: false) }
        }
        await #expect(throws: CocoaError.self) { _ = try await load() }
        #expect(names == [".archive.tar.partial", ".archive.tar.partial.json", "archive.tar"])
        // A folder that is there before is no target.
        let count = origin.requests.count
        await #expect(throws: CocoaError.self) { _ = try await load() }
        #expect(origin.requests.count == count)
        change { $0.onRequest = nil }
        try files.removeItem(at: file)
        _ = try await load()
        #expect(content == Self.first && names == ["archive.tar"])
        // Only the last byte; what came in one go is stored.
        #expect(state.value.withLock { $0.ranges.last } == (isCut ? "bytes=1000000-" : nil as String?))
        #expect(asked == (isCut ? ["all", "rest"] : ["all"]))
    }

    /// The app's closure would be asked with the whole body.
    @Test func theWholeIsNotStoredUnasked() async throws {
        var settings = DiskURLCache.Configuration(
            memoryCapacity: 4 << 20, diskCapacity: 64 << 20, directory: scratch.appending("asked"))
        settings.willCacheResponse = { response, _ in response }
        let asked = DiskURLCache(configuration: settings)
        let events = asked.events()
        change { $0.cuts = [300_000] }
        let request = URLRequest(url: origin.url("/a"))
        await #expect(throws: URLError.self) { try await asked.file(for: request, at: file, resuming: true) }
        try await asked.file(for: request, at: file, resuming: true)
        #expect(content == Self.first && self.asked == ["all", "rest"])
        #expect(!asked.contains(request))
        // The first answer was not stored either: it broke off.
        let expected = DiskURLCache.Reason.refusedUnasked.printedText
        while let reason = await events.notStored()?.reason, reason.printedText != expected {}
    }

    /// What this cache says of the two requests is not the response's.
    @Test func theWholeIsStoredWithoutAStatusOfThisCache() async throws {
        let named = DiskURLCache(in: scratch, clock: ManualClock(), memory: 4 << 20, disk: 64 << 20) {
            $0.cacheStatusName = "App"
        }
        change { $0.cuts = [300_000] }
        let request = URLRequest(url: origin.url("/a"))
        await #expect(throws: URLError.self) { try await named.file(for: request, at: file, resuming: true) }
        try await named.file(for: request, at: file, resuming: true)
        let (data, response) = try #require(named.cachedResponse(for: request).map { ($0.data, $0.response) })
        #expect(data == Self.first)
        #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "Cache-Status") == nil)
    }

    #if os(Linux)
        /// A process that is being made has all open files of its parent for a moment, with their locks.
        @Test func aChildProcessThatIsJustMadeDoesNotKeepThePartFromTheNextDownload() async throws {
            change { $0.cuts = [500_000] }
            let copies = Mutex<[Int32]>([])
            let partial = folder.resolvingSymlinksInPath().path + "/.archive.tar.partial"
            change { origin in
                origin.onRequest = {
                    for name in (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")) ?? [] {
                        let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + name)
                        if path == partial, let file = Int32(name) { copies.withLock { $0.append(dup(file)) } }
                    }
                }
            }
            await fails()
            change { $0.onRequest = nil }
            _ = try await load()
            #expect(names == ["archive.tar"] && asked == ["all", "rest"])
            let made = copies.withLock { $0 }
            #expect(!made.isEmpty)
            for file in made { close(file) }
        }
    #endif

    @Test func anotherVersionTakesThePlaceOfThePart() async throws {
        change { $0.cuts = [500_000] }
        await fails()
        change { ($0.tag, $0.body) = ("\"2\"", Self.second) }
        _ = try await load()
        #expect(content == Self.second && names == ["archive.tar"])
    }

    /// Wrong ranges, tags, lengths and codings.
    @Test(arguments: 0..<9) func anOriginThatLiesAboutTheRangeIsAskedForAll(_ lie: Int) async throws {
        change { $0.cuts = [500_000] }
        await fails()
        change {
            $0.lie = { start, whole in
                var answer = Self.rest(from: start, of: whole)
                switch lie {
                case 0: answer = Self.rest(from: start + 1, of: whole)
                case 1: answer.fields.set("Content-Range", "bytes \(start)-1000000/2000000")
                case 2: answer.fields.set("ETag", "\"2\"")
                case 3: answer.fields["ETag"] = nil
                case 4: answer.fields.set("ETag", "W/\"1\"")
                case 5: answer.fields["Content-Range"] = nil
                case 6: answer.fields.set("Content-Encoding", "br")
                // The file has become shorter than the part.
                case 7: answer.fields.set("Content-Range", "bytes 0-9/10")
                default: answer = .status(416, "", ["Content-Range": "bytes */1000001"])
                }
                return answer
            }
        }
        _ = try await load()
        #expect(content == Self.first)
        #expect(names == ["archive.tar"])
        #expect(asked == ["all", "rest", "all"])
    }

    @Test func aRestThatIsTooShortIsNotTheEnd() async throws {
        change { $0.cuts = [500_000] }
        await fails()
        change {
            $0.lie = { start, whole in
                var answer = Self.rest(from: start, of: whole)
                answer.body = answer.body.prefix(1_000)
                return answer
            }
        }
        await fails()
        change { $0.lie = nil }
        _ = try await load()
        #expect(content == Self.first && asked == ["all", "rest"])
    }

    @Test func aWholeThatContradictsItsDigestIsLoadedAnew() async throws {
        let digest = ContentHash.digest(Self.first)
        change { ($0.cuts, $0.fields) = ([500_000], ["Repr-Digest": "sha-256=:\(digest):"]) }
        await fails()
        let part = try FileHandle(forUpdating: folder.appendingPathComponent(".archive.tar.partial"))
        try part.write(contentsOf: Data([Self.first[0] ^ 1]))
        try part.close()
        _ = try await load()
        #expect(content == Self.first && asked == ["all", "rest", "all"])
    }

    @Test func anErrorOfTheOriginLeavesThePart() async throws {
        change { $0.cuts = [500_000] }
        await fails()
        change { $0.lie = { _, _ in .status(503) } }
        #expect(try await load().response.statusCode == 503)
        #expect(names == [".archive.tar.partial", ".archive.tar.partial.json", "archive.tar"])
        change { $0.lie = nil }
        _ = try await load()
        #expect(content == Self.first && asked == ["all", "rest"])
    }

    /// A coded body, one without a tag, one with a weak tag: nothing of it stays. What does not describe the part, or
    /// that of another URL, is not gone on with.
    @Test func whatCannotGoOnBeginsAnew() async throws {
        for fields: OriginFields in [["ETag": "W/\"1\""], ["ETag": ""]] {
            change { ($0.cuts, $0.fields) = ([500_000], fields) }
            await #expect(throws: URLError.self) { _ = try await load() }
            #expect(names.isEmpty)
        }
        change { ($0.cuts, $0.fields) = ([500_000], [:]) }
        await fails()
        _ = try await load("/other")
        #expect(content == Self.first && asked.last == "all")
        change { $0.cuts = [500_000] }
        try FileManager.default.removeItem(at: file)
        await fails("/b")
        try Data("{}".utf8).write(to: folder.appendingPathComponent(".archive.tar.partial.json"))
        _ = try await load("/b")
        #expect(content == Self.first && asked.last == "all" && names == ["archive.tar"])
    }

    @Test(arguments: [Int.min, -1, 0, 1]) func aDescriptionThatIsDamagedDoesNoHarm(length: Int) async throws {
        change { $0.cuts = [500_000] }
        await fails()
        let description = folder.appendingPathComponent(".archive.tar.partial.json")
        let text = try String(contentsOf: description, encoding: .utf8)
        let damaged = text.replacingOccurrences(of: "\"length\":1000001", with: "\"length\":\(length)")
        #expect(damaged != text)
        try Data(damaged.utf8).write(to: description)
        _ = try await load()
        #expect(content == Self.first && names == ["archive.tar"])
    }

    @Test func twoDownloadsOfOneTargetDoNotMix() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<4 {
                group.addTask { _ = try await load("/\(number)") }
            }
            try await group.waitForAll()
        }
        #expect(content == Self.first && names == ["archive.tar"])
    }

    @Test func aRemovalMeanwhileKeepsTheWholeOutOfTheCache() async throws {
        change { $0.cuts = [500_000] }
        await fails()
        change {
            $0.lie = { [cache] start, whole in
                cache.removeAllCachedResponses()
                return Self.rest(from: start, of: whole)
            }
        }
        _ = try await load()
        #expect(content == Self.first)
        #expect(!cache.contains(URLRequest(url: origin.url("/a"))))
    }
}

extension ContentHash {
    fileprivate static func digest(_ data: Data) -> String {
        var hash = ContentHash(.sha256)
        hash.update(data)
        return Data(hash.digest).base64EncodedString()
    }
}
