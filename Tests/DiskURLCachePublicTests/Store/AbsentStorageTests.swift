import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import Testing

/// A storage whose server does not answer for a while.
@Suite struct AbsentStorageTests {
    /// Nothing can be looked up then. The storage is told what to remove all the same, by the name under which it has
    /// the variant, and makes up for it.
    @Test(arguments: [nil, "A"]) func whatTheOriginTakesBackMeanwhileIsRemoved(vary: String?) async throws {
        let storage = AbsentStorage()
        var configuration = DiskURLCache.Configuration(memoryCapacity: 1 << 20)
        configuration.diskStorage = storage
        let cache = DiskURLCache(configuration: configuration)
        let network = ClosureTransport { request, exchange in
            let control = request.value(forHTTPHeaderField: "X-Next") ?? "max-age=600"
            exchange.head(200, vary.map { ["Cache-Control": control, "Vary": $0] } ?? ["Cache-Control": control])
            await exchange.piece("body")
        }
        func load(_ fields: [String: String]) async throws {
            _ = try await cache.answer(to: Responses.request("/a", fields: fields), through: network)
        }
        try await load(["A": "1"])
        try await load(["A": "2"])
        let variants = storage.variants
        #expect(variants.count == (vary == nil ? 1 : 2))
        storage.isAbsent = true
        try await load(["A": "1", "Cache-Control": "no-cache", "X-Next": "no-store"])
        #expect(storage.variants == variants)
        storage.isAbsent = false
        #expect(storage.variants.count == variants.count - 1)
        let asked = network.requests.count
        try await load(["A": "1"])
        #expect(network.requests.count == asked + 1)
        if vary != nil {
            cache.removeAllCachedResponses(from: .memory)
            try await load(["A": "2"])
            #expect(network.requests.count == asked + 1, "the other variant is still there")
        }
    }

    /// It may have a later response, so nothing stands in for it.
    @Test func aFallbackDoesNotStandIn() throws {
        let bundle = try ScratchDirectory()
        let request = Responses.request("/a")
        func store(_ body: String, in cache: DiskURLCache) {
            cache.storeCachedResponse(Responses.cached(request.url!, body), for: request)
            cache.flush()
        }
        store("older", in: DiskURLCache(memoryCapacity: 0, diskCapacity: 1 << 20, directory: bundle.url))
        let storage = AbsentStorage()
        var configuration = DiskURLCache.Configuration(memoryCapacity: 1 << 20)
        configuration.diskStorage = storage
        configuration.fallbackDirectories = [bundle.url]
        let cache = DiskURLCache(configuration: configuration)
        #expect(cache.cachedResponse(for: request)?.data == Data("older".utf8))
        store("newer", in: cache)
        cache.removeAllCachedResponses(from: .memory)
        storage.isAbsent = true
        #expect(cache.cachedResponse(for: request) == nil)
        storage.isAbsent = false
        #expect(cache.cachedResponse(for: request)?.data == Data("newer".utf8))
    }

    /// What this process has stored meanwhile is in memory, whichever variants the storage may have.
    @Test func memoryGoesOn() {
        let storage = AbsentStorage()
        storage.isAbsent = true
        var configuration = DiskURLCache.Configuration(memoryCapacity: 1 << 20)
        configuration.diskStorage = storage
        let cache = DiskURLCache(configuration: configuration)
        let fields = ["Cache-Control": "max-age=60", "Vary": "A"]
        for value in ["1", "2"] {
            let request = Responses.request("/a", fields: ["A": value])
            cache.storeCachedResponse(Responses.cached(request.url!, value, fields: fields), for: request)
            cache.flush()
        }
        for value in ["1", "2", "1"] {
            let found = cache.cachedResponse(for: Responses.request("/a", fields: ["A": value]))
            #expect(found?.data == Data(value.utf8))
        }
    }
}

/// Keeps entries by name and variant, as a server does, and removals until it is there again.
private final class AbsentStorage: DiskURLCache.EntryStorage {
    private struct State {
        var entries: [String: [String: DiskURLCache.Entry]] = [:]
        var isAbsent = false
        var delayed: [DiskURLCache.Criteria] = []

        mutating func remove(_ criteria: DiskURLCache.Criteria) {
            switch criteria.scope {
            case .name(let name, nil): entries[name] = nil
            case .name(let name, let variant?): entries[name]?[variant] = nil
            default: entries = [:]
            }
        }
    }

    private let state = Guarded(State())

    var variants: Set<String> { state.withLock { Set($0.entries.values.flatMap(\.keys)) } }

    var isAbsent: Bool {
        get { state.withLock { $0.isAbsent } }
        set {
            state.withLock { state in
                state.isAbsent = newValue
                guard !newValue else { return }
                for criteria in state.delayed { state.remove(criteria) }
                state.delayed = []
            }
        }
    }

    func entries(named name: String) -> [DiskURLCache.Entry]? {
        state.withLock { $0.isAbsent ? nil : Array($0.entries[name, default: [:]].values) }
    }

    func store(_ entry: DiskURLCache.Entry, named name: String) {
        state.withLock { if !$0.isAbsent { $0.entries[name, default: [:]][entry.variant] = entry } }
    }

    func removeEntries(matching criteria: DiskURLCache.Criteria) {
        state.withLock { if $0.isAbsent { $0.delayed.append(criteria) } else { $0.remove(criteria) } }
    }

    func flush() {}
}
