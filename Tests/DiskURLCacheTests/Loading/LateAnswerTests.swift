import Foundation
import Testing

@testable import DiskURLCache

/// What a load brings must not undo what happened while it was under way (RFC 9111 §4.3.4, §4.4).
@Suite(.fewAtATime) struct LateAnswerTests {
    enum Change: CaseIterable, Sendable { case removeAll, remove, invalidate, replace }

    let cache: DiskURLCache
    let clock = ManualClock()
    private let scratch: ScratchDirectory
    private let request = Responses.request("/a")

    init() throws {
        scratch = try ScratchDirectory("late")
        cache = DiskURLCache(in: scratch, clock: clock, memory: 1 << 20, disk: 10 << 20)
    }

    private func make(_ change: Change) {
        switch change {
        case .removeAll: cache.removeAllCachedResponses()
        case .remove: cache.removeCachedResponse(for: request)
        case .invalidate: cache.invalidate(Responses.url("/a"))
        case .replace:
            cache.storeCachedResponse(
                Responses.cached(Responses.url("/a"), "newer", fields: ["Cache-Control": "max-age=600"]), for: request)
        }
    }

    private var stored: String? {
        cache.cachedResponse(for: request).map { String(decoding: $0.data, as: UTF8.self) }
    }

    /// The second request waits until the change is made.
    private func network(_ gate: Gate, _ second: @escaping @Sendable (MemoryTransport.Exchange) -> Void)
        -> MemoryTransport
    {
        let count = Mutex(0)
        return MemoryTransport { _, exchange in
            let number = count.next()
            if number == 1 {
                exchange.head(
                    200, ["ETag": "\"1\"", "Cache-Control": "max-age=10, stale-while-revalidate=1000"])
                exchange.piece("old")
                exchange.end()
            } else {
                gate.wait()
                second(exchange)
            }
        }
    }

    @Test(arguments: Change.allCases) func aLate304ServesItsCallerAndStoresNothing(change: Change) async throws {
        let gate = Gate()
        let network = network(gate) { exchange in
            exchange.head(304, ["ETag": "\"1\"", "Cache-Control": "max-age=600"])
            exchange.end()
        }
        _ = try await LoadReader(request, from: cache, over: network).answer()
        clock.advance(by: 100)
        var revalidating = request
        revalidating.cachePolicy = .reloadRevalidatingCacheData
        let late = Task { [revalidating] in
            try await LoadReader(revalidating, from: cache, over: network).answer()
        }
        await gate.arrival()
        clock.advance(by: 1)
        make(change)
        gate.open()
        let answer = try await late.value
        #expect(answer.data == Data("old".utf8) && answer.source == .revalidated(.memory))
        #expect(stored == (change == .replace ? "newer" : nil))
    }

    /// A logout is not undone by what was being refreshed.
    @Test(arguments: Change.allCases) func aLateRefreshStoresNothing(change: Change) async throws {
        for isConfirmed in [true, false] {
            let gate = Gate()
            let network = network(gate) { exchange in
                exchange.head(
                    isConfirmed ? 304 : 200, ["ETag": isConfirmed ? "\"1\"" : "\"2\"", "Cache-Control": "max-age=600"])
                if !isConfirmed { exchange.piece("refreshed") }
                exchange.end()
            }
            _ = try await LoadReader(request, from: cache, over: network).answer()
            clock.advance(by: 100)
            #expect(try await LoadReader(request, from: cache, over: network).answer().isStale)
            await gate.arrival()
            clock.advance(by: 1)
            make(change)
            gate.open()
            await cache.untilRefreshed()
            #expect(stored == (change == .replace ? "newer" : nil))
            cache.removeAllCachedResponses()
        }
    }

    /// A part answers no request for the whole, so neither answer is older than the other one, and the whole stays.
    @Test(arguments: [true, false]) func aPartThatComesWithTheWholeLeavesIt(isPartFirst: Bool) async throws {
        let gates = (whole: Gate(), part: Gate())
        let network = MemoryTransport { request, exchange in
            let isPart = request.value(forHTTPHeaderField: "Range") != nil
            (isPart ? gates.part : gates.whole).wait()
            let range: HeaderFields = ["Cache-Control": "max-age=60", "Content-Range": "bytes 0-2/10"]
            exchange.head(isPart ? 206 : 200, isPart ? range : ["Cache-Control": "max-age=60"])
            exchange.piece(isPart ? "012" : "0123456789")
            exchange.end()
        }
        async let whole = LoadReader(request, from: cache, over: network).answer()
        await gates.whole.arrival()
        clock.advance(by: 1)
        let ranged = Responses.request("/a", fields: ["Range": "bytes=0-2"])
        async let part = LoadReader(ranged, from: cache, over: network).answer()
        await gates.part.arrival()
        (isPartFirst ? gates.part : gates.whole).open()
        if isPartFirst { _ = try await part } else { _ = try await whole }
        (isPartFirst ? gates.whole : gates.part).open()
        let bodies = try await [part.data, whole.data]
        #expect(bodies == [Data("012".utf8), Data("0123456789".utf8)])
        for _ in 1...2 {
            #expect(stored == "0123456789")
            cache.flush()
            cache.removeAllCachedResponses(from: .memory)
        }
    }

    /// A request without a tag takes over that of the response which its answer replaces.
    @Test(arguments: ["marked", "removed", "removed from disk"])
    func aLateAnswerThatInheritsATagIsNotFreshAfterAChangeByIt(change: String) async throws {
        let gate = Gate()
        let count = Mutex(0)
        let network = MemoryTransport { _, exchange in
            let number = count.next()
            if number > 1 { gate.wait() }
            exchange.head(200, ["Cache-Control": "max-age=600"])
            exchange.piece("\(number)")
            exchange.end()
        }
        var (tagged, reload) = (request, request)
        tagged.cacheOptions = .init(tags: ["news"])
        reload.cachePolicy = .reloadIgnoringLocalCacheData
        _ = try await LoadReader(tagged, from: cache, over: network).answer()
        async let late = LoadReader(reload, from: cache, over: network).answer()
        await gate.arrival()
        clock.advance(by: 1)
        if change == "removed from disk" {
            cache.flush()
            cache.removeAllCachedResponses(from: .memory)
        }
        if change == "marked" { cache.markStale(tag: "news") } else { cache.removeCachedResponses(tag: "news") }
        gate.open()
        _ = try await late
        #expect(try await LoadReader(request, from: cache, over: network).answer().data == Data("3".utf8))
    }

    /// It would have replaced one response, and removes no other one.
    @Test(arguments: ["a variant", "a later answer", "the whole"])
    func aBodyThatIsTooLargeLeaves(what: String) async throws {
        let gate = Gate()
        let fields = ["Cache-Control": "max-age=600", "Vary": "Accept-Language"]
        let network = MemoryTransport { _, exchange in
            gate.wait()
            var head = HeaderFields(dictionary: fields)
            if what == "the whole" { head.append("Content-Range", "bytes 0-11534335/11534336") }
            exchange.head(what == "the whole" ? 206 : 200, head)
            exchange.piece(Data(count: 11 << 20))
            exchange.end()
        }
        func put(_ body: String, language: String) {
            let stored = Responses.cached(Responses.url("/a"), body, fields: fields)
            cache.storeCachedResponse(stored, for: Responses.request("/a", fields: ["Accept-Language": language]))
        }
        func stored(language: String) -> String? {
            let request = Responses.request("/a", fields: ["Accept-Language": language])
            return cache.cachedResponse(for: request).map { String(decoding: $0.data, as: UTF8.self) }
        }
        if what != "a later answer" { put("before", language: "en") }
        put("variant", language: "de")
        clock.advance(by: 1)
        var request = Responses.request("/a", fields: ["Accept-Language": "en"])
        request.cachePolicy = .reloadIgnoringLocalCacheData
        if what == "the whole" { request.setValue("bytes=0-", forHTTPHeaderField: "Range") }
        async let late = LoadReader(request, from: cache, over: network).answer()
        await gate.arrival()
        clock.advance(by: 1)
        if what == "a later answer" { put("later", language: "en") }
        gate.open()
        #expect(try await late.data.count == 11 << 20)
        #expect(stored(language: "de") == "variant")
        #expect(stored(language: "en") == ["a later answer": "later", "the whole": "before"][what])
    }

    /// Neither says anything about the response.
    @Test(arguments: [3, 1 << 20], ["tag", "pin"])
    func aRefreshIsKeptThoughTheStoredResponseGetsATagOrAPin(length: Int, change: String) async throws {
        let body = testBody(1, length: length)
        let cacheControl = "max-age=10, stale-while-revalidate=1000"
        for isConfirmed in [true, false] {
            let gate = Gate()
            let count = Mutex(0)
            let network = MemoryTransport { _, exchange in
                let isFirst = count.next() == 1
                if !isFirst { gate.wait() }
                let isUnchanged = !isFirst && isConfirmed
                exchange.head(isUnchanged ? 304 : 200, ["ETag": "\"1\"", "Cache-Control": cacheControl])
                if !isUnchanged { exchange.piece(isFirst ? body : Data("refreshed".utf8)) }
                exchange.end()
            }
            var request = request
            _ = try await LoadReader(request, from: cache, over: network).answer()
            clock.advance(by: 100)
            if change == "tag" { request.cacheOptions = DiskURLCache.Options(tags: ["later"]) }
            #expect(try await LoadReader(request, from: cache, over: network).answer().isStale)
            await gate.arrival()
            if change == "pin" { #expect(cache.setPinned(true, for: request)) }
            gate.open()
            await cache.untilRefreshed()
            let answer = try await LoadReader(request, from: cache, over: network).answer()
            await cache.untilRefreshed()
            #expect(!answer.isStale && count.withLock { $0 } == 2)
            #expect(answer.data == (isConfirmed ? body : Data("refreshed".utf8)))
            // The tag stays.
            if change == "tag" {
                cache.removeCachedResponses(tag: "later")
            } else {
                cache.removeCachedResponse(for: request)
            }
            #expect(stored == nil)
        }
    }
}
