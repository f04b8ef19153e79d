import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The bytes of a body on their way: none is lost, none comes twice, and few are in memory.
@Suite(.fewAtATime) struct ArrivingBodyTests {
    private let scratch: ScratchDirectory
    private let files = FaultyFileSystem()
    private let cache: DiskURLCache
    private let refusals = Mutex<[DiskURLCache.Reason]>([])

    private static let whole = testBody(3, length: (6 << 20) + 77)

    enum Reader: String, CaseIterable, Sendable {
        case pieces, whole, none
    }

    init() throws {
        scratch = try ScratchDirectory("arriving")
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: 1 << 20, diskCapacity: 128 << 20, directory: scratch.appending("cache"))
        configuration.fileSystem = files
        cache = DiskURLCache(configuration: configuration)
        cache.flush()
    }

    /// - Parameter lifetime: of the response; 0 makes one that the rules keep off the disk.
    private func body(
        isStored: Bool, _ reader: Reader, length: Int? = nil, in cache: DiskURLCache? = nil,
        pausable: FetchToken? = nil, for request: URLRequest = Responses.request("/large")
    ) -> ArrivingBody {
        let now = Date()
        let response = StoredResponse(
            method: "GET", status: 200, fields: ["Cache-Control": "max-age=60"], requestTime: now, responseTime: now,
            vary: .none)
        let cache = cache ?? self.cache
        let readers: [Reader: ArrivingBody.Reader] = [
            .pieces: .pieces(PieceClient(takesItsTime: true)), .whole: .whole, .none: .none,
        ]
        return ArrivingBody(
            for: isStored ? response : nil, reader: readers[reader] ?? .none, length: length, pausable: pausable,
            of: cache.core.resolve(DiskURLCache.Request(request)), in: cache.core,
            refused: { [refusals] reason in refusals.withLock { $0.append(reason) } })
    }

    /// Takes parts that are there.
    private func take(from body: ArrivingBody, into data: inout Data, parts: Int = .max) {
        for _ in 0..<parts {
            switch body.next() {
            case .piece(let piece): data += piece
            case .file(let part): data += part.contents ?? Data("lost".utf8)
            case .later, .end: return
            }
        }
    }

    /// On the queue that writes the body's file, if it has one.
    private func content(of body: ArrivingBody) -> Result<ArrivingBody.Whole, DiskURLCache.Reason>? {
        body.fileQueue.map { queue in queue.sync { body.content } } ?? body.content
    }

    private var leftovers: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: scratch.appending("cache").path)) ?? [])
            .filter { $0.hasPrefix("incoming-") }
    }

    /// A body that is copied into one place while it arrives, as long as its head says, or not.
    @Test(arguments: [1, 100_000, 700_000, 1_400_000, Int.max], [true, false])
    func aClientThatTakesAllGetsWhatArrivedWhateverTheHeadSays(length: Int, isStored: Bool) async throws {
        for count in [1, 100_000, 700_000, 1_400_000] {
            let body = body(isStored: isStored, .whole, length: length)
            let isRefused = isStored && length > cache.core.store.largestStorableBody
            for start in stride(from: 0, to: count, by: 30_001) {
                _ = body.append(Data(Self.whole[start..<min(start + 30_001, count)]))
            }
            body.complete()
            let content = content(of: body)
            #expect(body.gathered == Self.whole.prefix(count))
            if isStored, !isRefused {
                guard case .success(let whole)? = content else {
                    Issue.record("\(String(describing: content))")
                    return
                }
                #expect(whole.body.count == count)
            }
            body.discard()
        }
    }

    @Test(arguments: Reader.allCases, [true, false])
    func whatNobodyHasTakenIsInMemoryUpToAMegabyte(reader: Reader, isStored: Bool) async {
        let body = body(isStored: isStored, reader)
        for start in stride(from: 0, to: Self.whole.count, by: 16 << 10) {
            _ = body.append(Data(Self.whole[start..<min(start + 16 << 10, Self.whole.count)]))
        }
        body.complete()
        // A client that takes the body whole has it in memory in the end; a file would be a detour.
        if reader != .whole || isStored {
            await eventually("little in memory") { body.bytesInMemory <= ArrivingBody.memoryLimit }
        }
        // Only what may become a record has a name.
        #expect(leftovers.count == (isStored ? 1 : 0))
        if isStored {
            let content = content(of: body)
            guard case .success(let whole)? = content else {
                Issue.record("\(String(describing: content))")
                return
            }
            #expect(whole.file?.opening.contents == Self.whole)
        }
        if reader == .whole { #expect(body.gathered == Self.whole) }
        body.discard()
        var data = Data()
        if reader == .pieces {
            take(from: body, into: &data)
            #expect(data == Self.whole)
        }
        await eventually("no file with a name") { leftovers == [] }
        #expect(refusals.withLock { $0 } == [])
    }

    /// Little is left to write at its end. A client that is behind gets it from memory, as the store does.
    @Test(arguments: [Reader.pieces, .whole])
    func aBodyOfKnownLengthIsWrittenWhileItArrivesAndStaysInMemory(reader: Reader) async {
        let length = 700_000
        let body = body(isStored: true, reader, length: length)
        for start in stride(from: 0, to: length, by: 10_000) {
            _ = body.append(Data(Self.whole[start..<start + 10_000]))
        }
        await eventually("a file") { leftovers.count == 1 }
        body.complete()
        guard case .success(let whole)? = content(of: body), case .memory(let data) = whole.body else {
            Issue.record("not in memory")
            return
        }
        #expect(data == Self.whole.prefix(length) && whole.file?.opening.contents == data)
        files.rule = { $0.operation == .read ? .error(EIO) : nil }
        if reader == .pieces {
            var taken = Data()
            take(from: body, into: &taken)
            #expect(taken == data)
        }
        body.discard()
    }

    /// What the client has not taken of a body that is too long for memory goes to a file that begins in its middle.
    @Test func aClientGetsTheRestOfABodyThatMemoryGaveUp() async {
        var request = Responses.request("/large")
        request.cacheOptions = .init(storage: .memoryOnly)
        let body = body(isStored: true, .pieces, for: request)
        let (start, count) = (100_000, 1_500_000)
        _ = body.append(Data(Self.whole[..<start]))
        var data = Data()
        take(from: body, into: &data, parts: 1)
        _ = body.append(Data(Self.whole[start..<count]))
        await eventually("a file") { body.bytesInMemory == 0 }
        body.complete()
        take(from: body, into: &data)
        #expect(data == Self.whole.prefix(count))
        #expect(refusals.withLock { $0.map(\.code) } == ["too-large"])
        body.discard()
    }

    /// What its client has not taken yet is in a file without a name, in the folder for temporary files.
    @Test func aCacheWithoutADiskLayerKeepsLittleInMemoryToo() async {
        let cache = DiskURLCache(
            configuration: DiskURLCache.Configuration(
                memoryCapacity: 1 << 20, diskCapacity: 0, directory: scratch.appending("none")))
        let body = body(isStored: false, .pieces, in: cache)
        for start in stride(from: 0, to: Self.whole.count, by: 16 << 10) {
            _ = body.append(Data(Self.whole[start..<min(start + 16 << 10, Self.whole.count)]))
        }
        body.complete()
        await eventually("little in memory") { body.bytesInMemory <= ArrivingBody.memoryLimit }
        var data = Data()
        take(from: body, into: &data)
        #expect(data == Self.whole)
        #expect(!FileManager.default.fileExists(atPath: scratch.appending("none").path))
        body.discard()
    }

    /// The store may keep the body in memory only: it needs no more of it than memory takes.
    @Test(arguments: [false, true]) func aBodyThatIsTooLongForMemoryAloneIsFreed(declares: Bool) async {
        let cache = DiskURLCache(
            memoryCapacity: 8 << 20, diskCapacity: 128 << 20, directory: scratch.appending("other"))
        var request = Responses.request("/large")
        request.cacheOptions = .init(storage: .memoryOnly)
        let limit = cache.core.store.largestMemoryEntry
        #expect(limit < Self.whole.count)
        let body = body(
            isStored: true, .pieces, length: declares ? Self.whole.count : nil, in: cache, for: request)
        var taken = Data()
        for start in stride(from: 0, to: Self.whole.count, by: 64 << 10) {
            _ = body.append(Data(Self.whole[start..<min(start + 64 << 10, Self.whole.count)]))
            take(from: body, into: &taken)
        }
        await eventually("little in memory") { body.bytesInMemory <= ArrivingBody.memoryLimit }
        body.complete()
        take(from: body, into: &taken)
        #expect(taken == Self.whole)
        #expect(refusals.withLock { $0 } == [.tooLarge])
        #expect("\(refusals.withLock { $0 })".contains("\(limit)"))
    }

    @Test func whatTheClientHasTakenIsFreed() {
        let body = body(isStored: false, .pieces)
        _ = body.append(Data(Self.whole.prefix(100_000)))
        #expect(body.bytesInMemory == 100_000)
        var data = Data()
        take(from: body, into: &data)
        #expect(body.bytesInMemory == 0 && data == Self.whole.prefix(100_000))
        body.discard()
    }

    /// A removal at the beginning moves all others: one for each piece would cost the square of their number.
    @Test func smallPiecesAreFreedTogether() {
        let body = body(isStored: false, .pieces)
        let count = 10_000
        for _ in 0..<count { _ = body.append(Data([1])) }
        var (kept, moved) = (count, 0)
        for _ in 0..<count {
            guard case .piece = body.next() else {
                Issue.record("no piece")
                return
            }
            let left = body.state.withLock { $0.pieces.count }
            if left != kept { moved += left }
            kept = left
        }
        #expect(moved <= count)
        #expect(body.bytesInMemory == 0)
        body.discard()
    }

    /// The rest of a refresh in the background may take long to arrive.
    @Test func whatNobodyReadsIsFreedOnceItIsNotStored() {
        let body = body(isStored: true, .none)
        _ = body.append(Data(Self.whole.prefix(100_000)))
        #expect(body.bytesInMemory == 100_000)
        body.giveUp(.diskFailed)
        #expect(body.bytesInMemory == 0)
        _ = body.append(Data(Self.whole.prefix(100_000)))
        #expect(body.bytesInMemory == 0)
        body.discard()
    }

    /// A load may be cancelled when its answer has arrived, but is not stored yet: nothing of it may be stored then, as
    /// its bytes are gone.
    @Test(arguments: Reader.allCases, [100, 3 << 20])
    func aBodyWhoseLoadHasEndedIsNotStored(reader: Reader, length: Int) async {
        let body = body(isStored: true, reader)
        var data = Data()
        let piece = min(length / 2, 16 << 10)
        for start in stride(from: 0, to: length, by: piece) {
            _ = body.append(Data(Self.whole[start..<min(start + piece, length)]))
            if start == 0 { take(from: body, into: &data) }
        }
        body.complete()
        let queue = body.fileQueue ?? DispatchQueue(label: "no file")
        body.discard()
        let content = queue.sync { body.content }
        #expect(content == nil, "\(String(describing: content))")
        if reader == .whole { #expect(body.gathered == nil) }
        await eventually("no file with a name") { leftovers == [] }
    }

    @Test func aLoadThatIsCancelledBeforeItsStoreStoresNothing() async throws {
        let exchanges = Exchanges()
        let client = PieceClient()
        let driver = LoadDriver(
            cache: cache, request: Responses.request("/a"), transport: exchanges.network(), client: client)
        driver.start()
        let exchange = await exchanges.next(1)
        exchange.head(200, ["Cache-Control": "max-age=60"])
        exchange.piece("the body")
        driver.cancel()
        let now = Date()
        let response = StoredResponse(
            method: "GET", status: 200, fields: ["Cache-Control": "max-age=60"], requestTime: now, responseTime: now,
            vary: .none)
        driver.store(LoadMachine.Storing(response: response))
        #expect(!cache.contains(Responses.request("/a")))
    }

    /// More arrives at once than may wait for the disk, and then no file is made, or the disk is full.
    @Test(arguments: [Reader.pieces, .whole], [true, false])
    func aPausedTransferGoesOnOnceItsReasonIsGone(reader: Reader, isDiskFull: Bool) async {
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: 256 << 20, diskCapacity: 256 << 20, directory: scratch.appending("other"))
        configuration.fileSystem = files
        if !isDiskFull { configuration.rules = [DiskURLCache.Rule(for: .all, storage: .memoryOnly)] }
        let cache = DiskURLCache(configuration: configuration)
        cache.flush()
        files.rule = { $0.operation == .write && $0.name.hasPrefix("incoming") ? .error(ENOSPC) : nil }
        let token = FetchToken()
        _ = token.didStart(cancel: {}, setPaused: { _ in })
        let body = body(isStored: true, reader, in: cache, pausable: token)
        var data = Data()
        #expect(body.append(Data(Self.whole.prefix(5 << 20))))
        if reader == .pieces { take(from: body, into: &data) }
        await eventually("the resumption") { !token.isPaused }
        // Also where nothing waits for the disk any more, but the client is behind.
        #expect(body.append(Data(Self.whole.dropFirst(5 << 20).prefix(2 << 20))) == (reader == .pieces))
        if reader == .pieces { take(from: body, into: &data) }
        #expect(!token.isPaused)
        body.complete()
        guard case .success(let whole)? = content(of: body), case .memory(let kept) = whole.body else {
            Issue.record("not stored")
            return
        }
        #expect(kept == Self.whole && data == (reader == .pieces ? Self.whole : Data()))
        body.discard()
    }

    /// In all orders of pieces, takes, faults of the disk and decisions not to store.
    @Test(arguments: 0..<40) func theClientGetsEachByteOnceAndTheStoreGetsAllOrNone(seed: Int) async throws {
        var random = TestRandom(seed)
        let isStored = Bool.random(using: &random)
        let reader = Reader.allCases.randomElement(using: &random)!
        let isOnDisk = Int.random(in: 0..<4, using: &random) > 0
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: [1 << 20, 64 << 20].randomElement(using: &random)!,
            // Half of it is the largest entry.
            diskCapacity: [4 << 20, 128 << 20].randomElement(using: &random)!, directory: scratch.appending("other"))
        configuration.fileSystem = files
        if !isOnDisk { configuration.rules = [DiskURLCache.Rule(for: .all, storage: .memoryOnly)] }
        let cache = DiskURLCache(configuration: configuration)
        cache.flush()
        let whole = Self.whole.prefix(Int.random(in: 1..<6 << 20, using: &random))
        let length = [nil, whole.count, 1_000].randomElement(using: &random)!
        let body = body(isStored: isStored, reader, length: length, in: cache)
        let faultAt = Int.random(in: 0..<12 << 20, using: &random)
        let endsAt = Int.random(in: 0..<12 << 20, using: &random)
        var data = Data()
        var start = 0
        while start < whole.count {
            if start > faultAt {
                files.rule = { $0.operation == .write && $0.name.hasPrefix("incoming") ? .error(ENOSPC) : nil }
            }
            let end = min(whole.count, start + Int.random(in: 1..<200_000, using: &random))
            _ = body.append(Data(whole[start..<end]))
            if start <= endsAt, end > endsAt { body.endStoring() }
            start = end
            if reader == .pieces, Bool.random(using: &random) {
                take(from: body, into: &data, parts: Int.random(in: 0..<6, using: &random))
            }
            if Int.random(in: 0..<8, using: &random) == 0 { await Task.yield() }
        }
        body.complete()
        func finish() {
            if isStored, endsAt >= whole.count {
                switch body.content {
                case .success(let arrived)?:
                    switch arrived.body {
                    case .file(let open): #expect(open.contents == whole, "seed \(seed)")
                    case .memory(let kept): #expect(kept == whole, "seed \(seed)")
                    }
                    if let file = arrived.file { #expect(file.opening.contents == whole, "seed \(seed)") }
                case .failure(let reason)?: #expect(refusals.withLock { $0 } == [reason], "seed \(seed)")
                case nil: Issue.record("The body is gone before its load has ended, seed \(seed)")
                }
            }
            if reader == .whole { #expect(body.gathered == whole, "seed \(seed)") }
        }
        if let queue = body.fileQueue { queue.sync { finish() } } else { finish() }
        body.discard()
        if reader == .pieces {
            take(from: body, into: &data)
            #expect(data == whole, "seed \(seed)")
            guard case .end = body.next() else {
                Issue.record("more than all, seed \(seed)")
                return
            }
        }
        let folder = scratch.appending("other").path
        await eventually("no file with a name") {
            !((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).contains {
                $0.hasPrefix("incoming-")
            }
        }
    }
}
