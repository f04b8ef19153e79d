import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a load brings after a removal answers its own caller and is not stored (RFC 9111 §4.3.4, §4.4).
@Suite(.fewAtATime) struct RemovalHistoryTests {
    private let scratch: ScratchDirectory
    private let cache: DiskURLCache
    private let key: RequestKey
    private let request = Responses.request("/a")

    init() throws {
        scratch = try ScratchDirectory()
        cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 64 << 20, directory: scratch.appending("c"))
        key = try #require(cache.key(for: request))
    }

    private func metadata(requestTime: Date = Date(), vary: VaryKey = .none) -> EntryMetadata {
        var metadata = StoredEntry.test(Data(), sequence: 0, url: "https://example.com/a").metadata
        if var response = metadata.http {
            response.requestTime = requestTime
            response.vary = vary
            metadata.response = .http(response)
        }
        return metadata
    }

    private func arrive(
        _ ticket: StoreTicket, requestTime: Date = Date(), vary: VaryKey = .none
    ) -> DiskURLCache.Reason? {
        cache.store.store(
            metadata(requestTime: requestTime, vary: vary), .memory(Data("late".utf8)), for: key, ticket: ticket)
    }

    private static let removals: [@Sendable (DiskURLCache) -> Void] = [
        { $0.removeCachedResponse(for: Responses.request("/a")) },
        { $0.removeAllCachedResponses() },
        { $0.removeCachedResponses(host: "example.com") },
        { $0.removeCachedResponses(urlPrefix: "https://example.com/") },
        { $0.removeCachedResponses(since: .distantPast) },
        { $0.invalidate(Responses.url("/a")) },
        { cache in
            cache.removeCachedResponse(for: Responses.request("/a"))
            // More than are remembered, so that the first is forgotten.
            for number in 0..<1_100 { cache.removeCachedResponse(for: Responses.request("/\(number)")) }
        },
    ]

    @Test(arguments: removals.indices) func aLateAnswerIsNotStored(_ index: Int) {
        let ticket = cache.store.ticket(at: Date())
        Self.removals[index](cache)
        #expect(arrive(ticket) == .removedMeanwhile)
        #expect(cache.cachedResponse(for: request) == nil)
        #expect(arrive(cache.store.ticket(at: Date())) == nil)
        #expect(cache.cachedResponse(for: request)?.data == Data("late".utf8))
    }

    /// A newer answer removed the stored response, for example by `no-store`. An answer that was requested before it is
    /// not stored any more; one that was requested after it may be.
    @Test func whatIsOlderThanASupersedingAnswerIsNotStored() throws {
        func ticket() -> StoreTicket { cache.store.ticket(at: Date()) }
        let (older, superseding, newer) = (ticket(), ticket(), ticket())
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "stored"), for: request)
        let stored = try #require(cache.store.lookup(key).variants().first)
        cache.store.remove(key, stored.metadata, by: superseding)
        #expect(arrive(older) == .removedMeanwhile)
        #expect(cache.cachedResponse(for: request) == nil)
        #expect(arrive(newer) == nil)
        #expect(cache.cachedResponse(for: request)?.data == Data("late".utf8))
    }

    /// A late 304 of an older load freshens what is stored a moment before the newer answer removes it.
    /// Or one that was asked for at the same instant.
    @Test(arguments: [false, true], [false, true])
    func whatAnOlderAnswerFreshenedIsRemovedToo(_ isOnDisk: Bool, _ isAsOld: Bool) throws {
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "stored"), for: request)
        if isOnDisk {
            cache.flush()
            cache.removeAllCachedResponses(from: .memory)
        }
        let stored = try #require(cache.store.lookup(key).variants().first)
        let response = try #require(stored.metadata.http)
        let superseding = cache.store.ticket(at: isAsOld ? response.requestTime : Date())
        cache.core.freshen(stored.metadata, with: response, for: cache.resolve(request), ticket: nil)
        #expect(cache.store.lookup(key).variants().first?.metadata.sequence != stored.metadata.sequence)
        cache.store.remove(key, stored.metadata, by: superseding)
        #expect(cache.cachedResponse(for: request) == nil)
        cache.flush()
        cache.removeAllCachedResponses(from: .memory)
        #expect(cache.cachedResponse(for: request) == nil)
    }

    /// What was asked for later than the answer that removes stays.
    @Test func aNewerAnswerIsNotRemovedByAnOlderOne() throws {
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "stored"), for: request)
        let stored = try #require(cache.store.lookup(key).variants().first)
        let superseding = cache.store.ticket(at: Date() - 10)
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "newer"), for: request)
        cache.store.remove(key, stored.metadata, by: superseding)
        #expect(cache.cachedResponse(for: request)?.data == Data("newer".utf8))
    }

    /// Through the loader: an answer that is held, a reload that brings `no-store` meanwhile.
    @Test(.loadsOnLinux) func aLoadUnderWayWhenAReloadBringsNoStore() async throws {
        let gate = Gate()
        let origin = try OriginServer { request in
            guard request.fields["X-Reload"] == nil else { return .ok("new", ["Cache-Control": "no-store"]) }
            var response = OriginResponse.ok("old", ["Cache-Control": "max-age=60"])
            response.beforeHead = { gate.wait() }
            return response
        }
        let harness = try LoadingHarness()
        let url = origin.url("/a")
        async let late = harness.load(url)
        await gate.arrival()
        harness.cache.storeCachedResponse(Responses.cached(url, "stored"), for: URLRequest(url))
        var reload = URLRequest(url, ["X-Reload": "yes"])
        reload.cachePolicy = .reloadIgnoringLocalCacheData
        #expect(try await LoadingHarness.load(reload, in: harness.session).text == "new")
        #expect(!harness.cache.contains(URLRequest(url)))
        gate.open()
        #expect(try await late.text == "old")
        #expect(!harness.cache.contains(URLRequest(url)))
    }

    /// Unsafe requests to other URLs, however many, keep no answer out of the cache.
    @Test func manyRemovalsOfOtherURLsDoNotConcernIt() {
        let ticket = cache.store.ticket(at: Date())
        for _ in 0..<5_000 { cache.invalidate(Responses.url("/i")) }
        for number in 0..<50 { cache.invalidate(Responses.url("/other\(number)")) }
        #expect(arrive(ticket) == nil)
    }

    @Test func removalsOfOthersDoNotConcernIt() {
        let ticket = cache.store.ticket(at: Date())
        cache.removeCachedResponse(for: Responses.request("/b"))
        cache.removeCachedResponses(host: "example.org")
        cache.removeCachedResponses(tag: "other")
        cache.removeCachedResponses(olderThan: .distantPast)
        cache.invalidate(Responses.url("/b"))
        #expect(arrive(ticket) == nil)
    }

    /// The answer to the question that was asked first does not replace the answer to a later one. That may be on disk
    /// only: memory evicted it, or another process stored it.
    @Test(arguments: [false, true]) func anOlderAnswerDoesNotReplaceANewerOne(isOnDisk: Bool) {
        let (early, late) = (Date(timeIntervalSinceNow: -10), Date(timeIntervalSinceNow: -5))
        let ticket = cache.store.ticket(at: Date())
        #expect(arrive(ticket, requestTime: late) == nil)
        if isOnDisk {
            cache.flush()
            cache.removeAllCachedResponses(from: .memory)
        }
        #expect(arrive(ticket, requestTime: early) == .removedMeanwhile)
        #expect(cache.store.lookup(key).variants().first?.metadata.http?.requestTime == late)
        #expect(arrive(ticket, requestTime: Date()) == nil)
    }

    /// Also if they have different `Vary` fields, but may answer one request (RFC 9111 §4).
    @Test(
        arguments: [
            ("", "X", true), ("X", "", true), ("X", "Y", true), ("X", "X, Y", true), ("X", "X", false),
        ], [false, true])
    func anOlderAnswerWithAnotherVaryNeither(_ vary: (newer: String, older: String, overlap: Bool), isOnDisk: Bool) {
        let ticket = cache.store.ticket(at: Date())
        func key(_ names: String, _ values: HeaderFields) -> VaryKey {
            names.isEmpty ? .none : VaryKey(names, request: values)
        }
        let newer = key(vary.newer, ["X": "1", "Y": "1"])
        #expect(arrive(ticket, requestTime: Date(timeIntervalSinceNow: -5), vary: newer) == nil)
        if isOnDisk {
            cache.flush()
            cache.removeAllCachedResponses(from: .memory)
        }
        let older = key(vary.older, ["X": vary.overlap ? "1" : "2", "Y": "2"])
        let refusal = arrive(ticket, requestTime: Date(timeIntervalSinceNow: -10), vary: older)
        #expect(refusal == (vary.overlap ? .removedMeanwhile : nil))
        #expect(cache.store.lookup(self.key).variants().count == (vary.overlap ? 1 : 2))
    }

    // MARK: Updates

    private func find() throws -> EntryMetadata { try #require(cache.store.lookup(key).variants().first).metadata }

    private func freshen(_ found: EntryMetadata) -> Bool {
        cache.store.update(found, of: key, ticket: cache.store.ticket(at: Date())) { metadata in
            metadata.tags = ["fresh"]
            metadata.storedAt += 1
        } != nil
    }

    /// Memory or disk: an update changes the head where the entry is, and keeps its body.
    @Test(arguments: [true, false]) func anUpdateKeepsTheBody(isInMemory: Bool) throws {
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "body"), for: request)
        if !isInMemory { cache.removeAllCachedResponses(from: .memory) }
        let found = try find()
        #expect(freshen(found))
        #expect(!freshen(found), "it is confirmed since")
        for _ in 1...2 {
            let variant = try #require(cache.store.lookup(key).variants().first)
            #expect(variant.metadata.tags == ["fresh"] && variant.metadata.sequence > found.sequence)
            #expect(variant.load()?.body == Data("body".utf8))
            cache.flush()
            cache.removeAllCachedResponses(from: .memory)
        }
    }

    /// A change applies only to the stored response that was asked about, still there.
    @Test func anUpdateOfWhatIsGoneChangesNothing() throws {
        for remove in Self.removals {
            cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "old"), for: request)
            let found = try find()
            remove(cache)
            #expect(!freshen(found))
            #expect(cache.cachedResponse(for: request) == nil)
        }
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "old"), for: request)
        let found = try find()
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "new"), for: request)
        #expect(!freshen(found))
        #expect(cache.cachedResponse(for: request)?.data == Data("new".utf8))
        cache.flush()
        cache.removeAllCachedResponses(from: .memory)
        #expect(cache.cachedResponse(for: request)?.data == Data("new".utf8))
    }
}
