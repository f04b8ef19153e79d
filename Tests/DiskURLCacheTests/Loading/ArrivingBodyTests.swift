import Foundation
import Testing

@testable import DiskURLCache

/// The bytes of a body on their way: none is lost, none comes twice, and few are in memory.
@Suite(.fewAtATime) struct ArrivingBodyTests {
    private let scratch: ScratchDirectory
    private let files = FaultyFileSystem()
    private let cache: DiskURLCache
    private let refusals = Mutex<[DiskURLCache.Reason]>([])

    init() throws {
        scratch = try ScratchDirectory("arriving")
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: 1 << 20, diskCapacity: 128 << 20, directory: scratch.appending("cache"))
        configuration.fileSystem = files
        cache = DiskURLCache(configuration: configuration)
        cache.flush()
    }

    private func body(for use: ArrivingBody.Use, reader: PieceClient?, acceptsFile: Bool = true) -> ArrivingBody {
        ArrivingBody(for: use, length: nil, reader: reader, pausable: nil, in: cache.store) {
            acceptsFile
        } refused: { [refusals] reason in
            refusals.withLock { $0.append(reason) }
        }
    }

    /// Takes all that is there.
    private func take(from body: ArrivingBody, into data: inout Data, parts: Int = .max) {
        for _ in 0..<parts {
            switch body.next() {
            case .piece(let piece): data += piece
            case .file(let part): data += part.contents ?? Data("lost".utf8)
            case .later, .end: return
            }
        }
    }

    private static let whole = testBody(3, length: (24 << 20) + 77)

    private var leftovers: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: scratch.appending("cache").path)) ?? [])
            .filter { $0.hasPrefix("incoming-") }
    }

    @Test(arguments: ["store", "delivery", "neither"]) func whatTheClientDoesNotTakeWaitsInAFile(use: String) async {
        let reader = PieceClient(takesItsTime: true)
        let body = body(
            for: use == "store" ? .store(limit: 64 << 20) : .delivery, reader: use == "neither" ? nil : reader)
        for start in stride(from: 0, to: Self.whole.count, by: 16 << 10) {
            body.append(Data(Self.whole[start..<min(start + 16 << 10, Self.whole.count)]))
        }
        await eventually { body.bytesInMemory <= ArrivingBody.memoryLimit }
        // Only what may become a record has a name.
        #expect(leftovers.count == (use == "store" ? 1 : 0))
        body.complete()
        if use == "store" {
            guard case .success(.file(let file)) = body.content else {
                Issue.record("\(body.content)")
                return
            }
            #expect(file.opening.contents == Self.whole && body.bytesInMemory == 0)
        }
        body.discard()
        var data = Data()
        if use != "neither" { take(from: body, into: &data) }
        #expect(data == (use == "neither" ? Data() : Self.whole))
        #expect(leftovers == [] && refusals.withLock { $0 } == [])
    }

    /// In all orders of pieces, takes, faults of the disk and decisions not to store.
    @Test(arguments: 0..<24) func theClientGetsEachByteOnceAndTheStoreGetsAllOrNone(seed: Int) async throws {
        var random = TestRandom(seed)
        let forStore = Bool.random(using: &random)
        let limit = [2 << 20, 64 << 20].randomElement(using: &random)!
        let reader = PieceClient(takesItsTime: true)
        let body = body(
            for: forStore ? .store(limit: limit) : .delivery, reader: reader,
            acceptsFile: Int.random(in: 0..<4, using: &random) > 0)
        let whole = Self.whole.prefix(Int.random(in: 1..<6 << 20, using: &random))
        let faultAt = Int.random(in: 0..<12 << 20, using: &random)
        let discardAt = Int.random(in: 0..<12 << 20, using: &random)
        var data = Data()
        var start = 0
        while start < whole.count {
            if start > faultAt {
                files.rule = { $0.operation == .write && $0.name.hasPrefix("incoming") ? .error(ENOSPC) : nil }
            }
            let end = min(whole.count, start + Int.random(in: 1..<200_000, using: &random))
            body.append(Data(whole[start..<end]))
            if start <= discardAt, end > discardAt { body.discard() }
            start = end
            if Bool.random(using: &random) {
                take(from: body, into: &data, parts: Int.random(in: 0..<6, using: &random))
            }
            if Int.random(in: 0..<8, using: &random) == 0 { await Task.yield() }
        }
        body.complete()
        if forStore, discardAt >= whole.count {
            switch body.content {
            case .success(.file(let file)): #expect(file.opening.contents == whole)
            case .success(.memory(let kept)): #expect(kept == whole)
            case .failure(let reason): #expect(refusals.withLock { $0 } == [reason])
            }
        }
        body.discard()
        take(from: body, into: &data)
        #expect(data == whole, "seed \(seed)")
        guard case .end = body.next() else {
            Issue.record("more than all, seed \(seed)")
            return
        }
        await eventually { leftovers == [] }
    }
}
