import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The bytes of a long body are written before the changes of its key are put in order: nobody waits for them.
@Suite(.fewAtATime) struct WritingAheadTests {
    private static let length = 160 << 10

    /// Of a record, or of a long body before it becomes one.
    private static func isWrite(_ call: FaultyFileSystem.Call) -> Bool {
        call.operation == .write && (call.isRecord || call.name.hasPrefix("incoming"))
    }

    /// A cache that owns its directory; the next write to a record of it waits for a gate.
    private final class Fixture: Sendable {
        let scratch: ScratchDirectory
        let files = FaultyFileSystem()
        let cache: DiskURLCache
        let gate = Gate()
        let hasBegun = Flag()
        let isStored = Flag()

        init() throws {
            scratch = try ScratchDirectory()
            var configuration = DiskURLCache.Configuration(
                memoryCapacity: 16 << 20, diskCapacity: 64 << 20, directory: scratch.appending("c"))
            configuration.fileSystem = files
            cache = DiskURLCache(configuration: configuration)
            cache.flush()
        }

        func put(_ path: String, _ body: Data, tags: Set<String> = []) {
            var request = Responses.request(path)
            request.cacheOptions = DiskURLCache.Options(tags: tags)
            cache.storeCachedResponse(
                CachedURLResponse(response: Responses.http(Responses.url(path)), data: body), for: request)
        }

        func body(_ path: String) -> Data? { cache.cachedResponse(for: Responses.request(path))?.data }

        func bodyOnDisk(_ path: String) -> Data? {
            cache.removeAllCachedResponses(from: .memory)
            return body(path)
        }

        /// Begins a store on another thread, and returns while its first write is held up.
        func beginStore(_ path: String, _ body: Data) async {
            let isFirst = Mutex(true)
            files.rule = { [gate, hasBegun] call in
                guard WritingAheadTests.isWrite(call), isFirst.disarm() else { return nil }
                hasBegun.set()
                gate.wait()
                return nil
            }
            DispatchQueue.global().async { [self] in
                put(path, body)
                isStored.set()
            }
            await hasBegun.isSet()
        }

        func endStore() async {
            gate.open()
            await isStored.isSet()
        }

        var records: [String] {
            get throws {
                try FileManager.default.contentsOfDirectory(atPath: scratch.appending("c/records").path)
            }
        }
    }

    enum Removal: CaseIterable {
        case key, tag, everything, disk
    }

    /// Whatever is removed, the removal ends while a body is being written, and that body is not stored.
    @Test(arguments: Removal.allCases) func noRemovalWaitsForABody(what: Removal) async throws {
        let fixture = try Fixture()
        let (cache, isRemoved) = (fixture.cache, Flag())
        fixture.put("/other", Data("other".utf8), tags: ["tag"])
        await fixture.beginStore("/slow", testBody(1, length: Self.length))
        DispatchQueue.global().async {
            switch what {
            case .key: cache.removeCachedResponse(for: Responses.request("/slow"))
            case .tag: cache.removeCachedResponses(tag: "tag")
            case .everything: cache.removeAllCachedResponses()
            case .disk: cache.removeAllCachedResponses(from: .disk)
            }
            isRemoved.set()
        }
        await isRemoved.isSet()
        #expect(!fixture.isStored.value)
        #expect(fixture.body("/slow") == nil)
        await fixture.endStore()
        let isKept = what == .tag || what == .disk
        #expect((fixture.body("/slow") != nil) == isKept)
        #expect((fixture.bodyOnDisk("/slow") == testBody(1, length: Self.length)) == isKept)
        #expect((fixture.body("/other") != nil) == (what == .key))
        cache.flush()
        #expect(try fixture.records.count == (what == .key || isKept ? 1 : 0))
    }

    /// Changes of all other keys, and of the same key, go on while a body is being written.
    @Test func noOtherStoreWaitsForABody() async throws {
        let fixture = try Fixture()
        let isDone = Flag()
        await fixture.beginStore("/slow", testBody(1, length: Self.length))
        DispatchQueue.global().async {
            // Keys of each stripe.
            for number in 0..<64 { fixture.put("/\(number)", Data("\(number)".utf8)) }
            fixture.put("/slow", testBody(2, length: Self.length))
            isDone.set()
        }
        await isDone.isSet()
        #expect(!fixture.isStored.value)
        #expect(fixture.bodyOnDisk("/slow") == testBody(2, length: Self.length))
        for number in 0..<64 { #expect(fixture.body("/\(number)") == Data("\(number)".utf8)) }
        await fixture.endStore()
        // The one that was replaced is removed at once.
        #expect(try fixture.records.count == 65)
        // Both were stored at the same time: one of them stays, the same everywhere.
        let found = try #require(fixture.body("/slow"))
        #expect([testBody(1, length: Self.length), testBody(2, length: Self.length)].contains(found))
        #expect(fixture.bodyOnDisk("/slow") == found)
    }

    /// What was stored meanwhile for another `Vary`, in the slots beside, stays.
    @Test func otherVariantsThatWereStoredMeanwhileStay() async throws {
        let fixture = try Fixture()
        func put(_ language: String) {
            fixture.cache.storeCachedResponse(
                Responses.cached(
                    Responses.url("/slow"), language,
                    fields: ["Cache-Control": "max-age=3600", "Vary": "Accept-Language"]),
                for: Responses.request("/slow", fields: ["Accept-Language": language]))
        }
        await fixture.beginStore("/slow", testBody(1, length: Self.length))
        for number in 0..<5 { put("x-\(number)") }
        await fixture.endStore()
        #expect(fixture.bodyOnDisk("/slow") == testBody(1, length: Self.length))
        fixture.cache.flush()
        #expect(try fixture.records.count == 6)
    }

    /// A body whose write fails leaves nothing behind, and the response stays in memory.
    @Test func aBodyThatCannotBeWrittenLeavesNothing() throws {
        let fixture = try Fixture()
        fixture.files.rule = { Self.isWrite($0) ? .error(ENOSPC) : nil }
        fixture.put("/a", testBody(1, length: Self.length))
        #expect(fixture.body("/a") == testBody(1, length: Self.length))
        #expect(try fixture.records == [])
        fixture.files.rule = { _ in nil }
        fixture.put("/a", testBody(2, length: Self.length))
        #expect(fixture.bodyOnDisk("/a") == testBody(2, length: Self.length))
    }

    /// While its body is being written, a record is none: also for a process that opens the directory after a kill.
    @Test func whatHasNoTailIsNoRecord() async throws {
        let fixture = try Fixture()
        let hasBody = Flag()
        let writes = Mutex(0)
        fixture.files.rule = { [gate = fixture.gate] call in
            // The body is written, the tail is not.
            guard Self.isWrite(call), writes.next() == 2 else { return nil }
            hasBody.set()
            gate.wait()
            return nil
        }
        DispatchQueue.global().async {
            fixture.put("/slow", testBody(1, length: Self.length))
            fixture.isStored.set()
        }
        await hasBody.isSet()
        let copy = fixture.scratch.appending("copy")
        try FileManager.default.copyItem(at: fixture.scratch.appending("c"), to: copy)
        let other = DiskURLCache(
            configuration: DiskURLCache.Configuration(
                memoryCapacity: 0, diskCapacity: 64 << 20, directory: copy))
        other.flush()
        #expect(other.cachedResponse(for: Responses.request("/slow")) == nil)
        #expect(other.currentDiskUsage == 0)
        await fixture.endStore()
        #expect(fixture.bodyOnDisk("/slow") == testBody(1, length: Self.length))
    }

    /// Threads that store long bodies for few keys, and remove them: what is found is whole, and at the end each key
    /// has at most one record.
    @Test func manyThreadsStoreLongBodies() async throws {
        let fixture = try Fixture()
        let bodies = (0..<4).map { testBody($0, length: (129 + 3 * $0) << 10) }
        let hits = Mutex(0)
        await withTaskGroup(of: Void.self) { group in
            for thread in 0..<4 {
                group.addTask {
                    for round in 0..<30 {
                        let path = "/\((round + thread) % 2)"
                        fixture.put(path, bodies[(round * 7 + thread) % bodies.count])
                        if let found = fixture.body(path) {
                            _ = hits.next()
                            #expect(bodies.contains(found))
                        }
                        if round % 5 == thread { fixture.cache.removeCachedResponse(for: Responses.request(path)) }
                        if round % 3 == 0 { fixture.cache.removeAllCachedResponses(from: .memory) }
                    }
                }
            }
        }
        #expect(hits.withLock { $0 } > 0)
        fixture.cache.flush()
        #expect(try fixture.records.count <= 2)
        for path in ["/0", "/1"] {
            if let found = fixture.bodyOnDisk(path) { #expect(bodies.contains(found)) }
        }
    }
}
