import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Bodies in pieces and in files: `bytes(for:)`, `file(for:at:)`, and what a stream of a transport writes.
@Suite(.fewAtATime) struct BodyStreamTests {
    private let cache: DiskURLCache
    private let scratch: ScratchDirectory
    private let folder: URL
    /// Above what memory takes, and no multiple of a piece.
    private static let large = testBody(1, length: 3_000_001)
    private var large: Data { Self.large }

    init() throws {
        scratch = try ScratchDirectory("body-stream")
        cache = DiskURLCache(in: scratch, clock: ManualClock(), memory: 4 << 20, disk: 64 << 20)
        folder = scratch.url.appendingPathComponent("files")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    private var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []).sorted()
    }

    private func origin(_ control: String = "max-age=60") throws -> OriginServer {
        try OriginServer { [large] request in
            request.path == "/moved"
                ? OriginResponse(status: 302, fields: ["Location": "/a"])
                : OriginResponse(fields: ["Cache-Control": control], body: large)
        }
    }

    private func body(of stream: DiskURLCache.ResponseStream) async throws -> Data {
        var body = Data()
        for try await piece in stream { body += piece }
        return body
    }

    private func code(_ call: () async throws -> Void) async -> CocoaError.Code? {
        do { try await call() } catch { return (error as? CocoaError)?.code }
        return nil
    }

    @Test func bytesComeInPiecesWithHeadReportAndProgressFromTheNetworkAndFromDisk() async throws {
        let origin = try origin()
        let request = URLRequest(url: origin.url("/a"))
        for outcome in [DiskURLCache.Report.Outcome.miss(.notInCache), .hit(.disk)] {
            let progress = Progress(totalUnitCount: 0)
            let stream = try await cache.bytes(for: request, progress: progress)
            #expect(stream.response.statusCode == 200 && stream.report.outcome == outcome)
            #expect(progress.totalUnitCount == Int64(large.count))
            let first = try #require(try await stream.next())
            #expect(first.count < large.count && progress.completedUnitCount == Int64(first.count))
            #expect(try await first + body(of: stream) == large)
            #expect(progress.isFinished && progress.completedUnitCount == Int64(large.count))
            #expect(stream.report.bytes == large.count)
            cache.flush()
        }
        #expect(origin.requests.count == 1)
    }

    @Test func aFileHasTheBodyOfAFirstLoadOfAHitAndOfAnAnswerThatIsNotStored() async throws {
        let (stored, refused) = (try origin(), try origin("no-store"))
        for (number, url) in [stored.url("/a"), stored.url("/a"), stored.url("/moved"), refused.url("/a")].enumerated()
        {
            let (file, progress) = (folder.appendingPathComponent("\(number)"), Progress(totalUnitCount: 0))
            let (response, report) = try await cache.file(for: URLRequest(url: url), at: file, progress: progress)
            #expect(try Data(contentsOf: file) == large)
            #expect(response.statusCode == 200 && report.bytes == large.count && progress.isFinished)
            #expect(response.url?.path == "/a")
            cache.flush()
        }
        #expect(names == ["0", "1", "2", "3"])
        #expect(stored.requests.map(\.path) == ["/a", "/moved"])
    }

    @Test func aSmallBodyOfMemoryAndAnEmptyOneBecomeFiles() async throws {
        let origin = try OriginServer { _ in .ok("hello", ["Cache-Control": "max-age=60"]) }
        var request = URLRequest(url: origin.url("/a"))
        try await cache.file(for: request, at: folder.appendingPathComponent("first"))
        let second = try await cache.file(for: request, at: folder.appendingPathComponent("second"))
        #expect(second.report.outcome == .hit(.memory))
        request.httpMethod = "HEAD"
        let head = try await cache.file(for: request, at: folder.appendingPathComponent("head"))
        #expect(head.response.statusCode == 200)
        let texts = try names.map { try String(contentsOf: folder.appendingPathComponent($0), encoding: .utf8) }
        #expect(names == ["first", "head", "second"] && texts == ["hello", "", "hello"])
    }

    @Test func aFileIsACopyThatTheAppMayChange() async throws {
        let origin = try origin()
        let request = URLRequest(url: origin.url("/a"))
        for _ in 0..<2 {
            let file = folder.appendingPathComponent("a")
            try await cache.file(for: request, at: file)
            let handle = try FileHandle(forUpdating: file)
            try handle.write(contentsOf: Data(repeating: 0, count: 1_000))
            try handle.close()
            try FileManager.default.removeItem(at: file)
            cache.flush()
        }
        #expect(try await cache.data(for: request).data == large)
        #expect(origin.requests.count == 1)
    }

    @Test func aDestinationThatExistsOrCannotBeMadeIsAnErrorBeforeARequestIsSent() async throws {
        let origin = try origin()
        let request = URLRequest(url: origin.url("/a"))
        let taken = folder.appendingPathComponent("taken")
        try Data("mine".utf8).write(to: taken)
        #expect(await code { try await cache.file(for: request, at: taken) } == .fileWriteFileExists)
        let nowhere = folder.appendingPathComponent("none/a")
        #expect(await code { try await cache.file(for: request, at: nowhere) } == .fileNoSuchFile)
        let web = try #require(URL(string: "https://example.com/a"))
        #expect(await code { try await cache.file(for: request, at: web) } == .fileWriteUnsupportedScheme)
        #expect(try Data(contentsOf: taken) == Data("mine".utf8))
        #expect(names == ["taken"] && origin.requests.isEmpty)
    }

    /// The unfinished file of a load that failed goes when the queue that wrote it has let go of it.
    private func hasOnly(_ names: String...) async { await eventually("only \(names)") { self.names == names } }

    /// An archive that somebody has is not lost since the server is out of order.
    @Test(arguments: [false, true]) func anErrorOfTheServerReplacesNoFile(resuming: Bool) async throws {
        let origin = try OriginServer { _ in .status(503, "Service Unavailable", ["Cache-Control": "no-store"]) }
        let file = folder.appendingPathComponent("a")
        func load() async throws -> Int {
            try await cache.file(
                for: URLRequest(url: origin.url("/a")), at: file, replacingFile: true, resuming: resuming
            ).response.statusCode
        }
        #expect(try await load() == 503)
        #expect(names == ["a"])
        try Data("good".utf8).write(to: file)
        #expect(try await load() == 503)
        #expect(try Data(contentsOf: file) == Data("good".utf8))
        await hasOnly("a")
    }

    /// A job of CI that runs twice.
    @Test func aFileIsReplacedInOneStepIfTheAppSaysSo() async throws {
        let origin = try origin()
        let request = URLRequest(url: origin.url("/a"))
        let file = folder.appendingPathComponent("a")
        for content in ["old", "older"] {
            try Data(content.utf8).write(to: file)
            try await cache.file(for: request, at: file, replacingFile: true)
            #expect(try Data(contentsOf: file) == large)
            await hasOnly("a")
        }
        let failing = ClosureTransport { _, exchange in
            exchange.head(200)
            await exchange.piece("half")
            throw URLError(.networkConnectionLost)
        }
        let stream = try await cache.load(Responses.request("/a"), through: failing)
        await #expect(throws: URLError.self) { try await stream.write(to: file, replacingFile: true) }
        #expect(try Data(contentsOf: file) == large)
        await hasOnly("a")
        let taken = folder.appendingPathComponent("folder")
        try FileManager.default.createDirectory(at: taken, withIntermediateDirectories: true)
        #expect(
            await code { try await cache.file(for: request, at: taken, replacingFile: true) } == .fileWriteFileExists)
        await hasOnly("a", "folder")
    }

    @Test func aFileThatTakesTheNameMeanwhileStaysAndIsTheError() async throws {
        let file = folder.appendingPathComponent("a")
        let transport = ClosureTransport { _, exchange in
            exchange.head(200)
            await exchange.piece("ours")
            // At once: perhaps the stream has not begun its file yet, and looks while this one is written.
            try Data("theirs".utf8).write(to: file, options: .atomic)
        }
        let stream = try await cache.load(Responses.request("/a"), through: transport)
        #expect(await code { try await stream.write(to: file) } == .fileWriteFileExists)
        #expect(try Data(contentsOf: file) == Data("theirs".utf8))
        await hasOnly("a")
    }

    @Test func aFullDiskIsAnErrorOfTheFile() {
        #expect(DestinationFile.error(ENOSPC, folder).code == .fileWriteOutOfSpace)
        #expect(DestinationFile.error(EACCES, folder).code == .fileWriteNoPermission)
    }

    @Test func aReaderThatStopsAndAProgressThatIsCancelledCancelTheLoad() async throws {
        let transport = ClosureTransport { _, exchange in
            exchange.head(200)
            await exchange.piece("begin")
            await exchange.untilCancelled()
        }
        func begin(_ path: String, _ progress: Progress? = nil) async throws -> DiskURLCache.ResponseStream {
            try await cache.load(Responses.request(path), through: transport, progress: progress)
        }
        for try await _ in try await begin("/a") { break }
        await eventually("the cancellation by the reader's end") { transport.cancelled == 1 }
        let progress = Progress(totalUnitCount: 0)
        let stream = try await begin("/b", progress)
        #expect(try await stream.next() == Data("begin".utf8))
        #expect(progress.completedUnitCount == 5 && progress.totalUnitCount == -1)
        progress.cancel()
        await #expect(throws: CancellationError.self) { try await stream.write(to: folder.appendingPathComponent("b")) }
        await eventually("the cancellation by the progress") { transport.cancelled == 2 }
        await hasOnly()
        await #expect(throws: CancellationError.self) { _ = try await begin("/c", progress) }
    }

    /// Its load has ended: what is left of the body is still to be read.
    @Test func aProgressOrATaskThatIsCancelledEndsAHit() async throws {
        let body = testBody(1, length: 2 << 20)
        let origin = try OriginServer { _ in OriginResponse(fields: ["Cache-Control": "max-age=60"], body: body) }
        let request = URLRequest(url: origin.url("/a"))
        let cache = DiskURLCache(in: scratch, clock: ManualClock(), memory: 64 << 10)
        _ = try await cache.data(for: request)
        let progress = Progress(totalUnitCount: 0)
        let stream = try await cache.bytes(for: request, progress: progress)
        #expect(try await stream.next() != nil && stream.report.outcome == .hit(.disk))
        progress.cancel()
        await #expect(throws: CancellationError.self) { try await stream.write(to: folder.appendingPathComponent("a")) }
        await hasOnly()
        let kept = try await cache.bytes(for: request)
        let reader = Task { () -> Bool in
            withUnsafeCurrentTask { $0?.cancel() }
            return try await kept.next() != nil
        }
        await #expect(throws: CancellationError.self) { try await reader.value }
        // Nobody else gets a body without that piece.
        await #expect(throws: CancellationError.self) { try await kept.next() }
    }

    @Test func aBodyThatContradictsItsDigestFailsAtItsEnd() async throws {
        let origin = try OriginServer { request in
            .ok(request.path, ["Cache-Control": "max-age=60", "Repr-Digest": "sha-256=:\(Self.digestOfA):"])
        }
        let cache = DiskURLCache(in: scratch, clock: ManualClock()) { $0.wrongDigest = .failed }
        let (right, wrong) = (URLRequest(url: origin.url("/a")), URLRequest(url: origin.url("/b")))
        #expect(try await body(of: cache.bytes(for: right)) == Data("/a".utf8))
        try await cache.file(for: right, at: folder.appendingPathComponent("a"))
        await #expect(throws: DiskURLCache.Reason.self) { try await body(of: cache.bytes(for: wrong)) }
        await #expect(throws: DiskURLCache.Reason.self) {
            try await cache.file(for: wrong, at: folder.appendingPathComponent("b"))
        }
        await hasOnly("a")
    }

    /// The SHA-256 of the text "/a".
    private static let digestOfA = "alDchYQTTH3lN8AFL/bSNr+HQ1XgUMkFI+DF/ypUOig="
}
