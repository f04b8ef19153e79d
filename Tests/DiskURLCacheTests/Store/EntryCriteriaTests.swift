import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a storage of an app's own is told of removals, and what it tells of those by others.
@Suite struct EntryCriteriaTests {
    let scratch: ScratchDirectory

    init() throws {
        scratch = try ScratchDirectory()
    }

    private func cache(_ storage: any DiskURLCache.EntryStorage, memory: Int = 1 << 20) -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(memoryCapacity: memory, directory: scratch.appending("none"))
        configuration.diskStorage = storage
        return DiskURLCache(configuration: configuration)
    }

    private func store(_ url: String, tags: Set<String> = [], in cache: DiskURLCache) -> URLRequest {
        var request = URLRequest(url: URL(string: url)!)
        request.cacheOptions = .init(tags: tags)
        cache.storeCachedResponse(Responses.cached(request.url!, "body"), for: request)
        cache.flush()
        return request
    }

    /// Two spellings of é are two tags, in memory as on disk.
    @Test func tagsAreComparedByBytes() {
        let (one, two) = ("caf\u{E9}", "cafe\u{301}")
        let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: scratch.appending("tags"))
        for layers in [[DiskURLCache.Layer](), [.memory]] {
            let requests = [one, two].map { store("https://a.example/\($0.utf8.count)", tags: [$0], in: cache) }
            for layer in layers { cache.removeAllCachedResponses(from: layer) }
            cache.removeCachedResponses(tag: one)
            #expect(requests.map { cache.contains($0) } == [false, true])
            cache.removeCachedResponses(tag: two)
            #expect(requests.map { cache.contains($0) } == [false, false])
        }
        #expect([one].joined(withTags: [two]).count == 2)
        #expect([one].joined(withTags: [one, "a"]) == ["a", one])
    }

    /// The library's own layers have these names.
    @Test(arguments: ["memory", "fallback", "redis"]) func aStorageHasNoNameOfAnotherLayer(_ name: String) async throws
    {
        let storage = RecordingStorage()
        storage.name = name
        let cache = cache(storage, memory: 0)
        let request = store("https://a.example/1", in: cache)
        cache.removeAllCachedResponses(from: .fallback)
        #expect(!cache.contains(request, in: .memory) && cache.contains(request, in: .disk))
        let outcome = try await cache.data(for: request).report.outcome
        #expect(outcome.description == (name == "redis" ? "hit (redis)" : "hit (storage)"))
    }

    /// Each removal says where to look, and there are exactly the entries that match.
    @Test func theScopeFindsWhatMatches() throws {
        let storage = RecordingStorage()
        let cache = cache(storage)
        let a = store("https://a.example/1", tags: ["x", "y"], in: cache)
        _ = store("https://a.example/2", tags: ["y"], in: cache)
        _ = store("https://b.example/1", tags: ["x"], in: cache)
        let entries = storage.all
        #expect(entries.allSatisfy { Set($0.groups).count == $0.groups.count })
        #expect(entries.map(\.groups.count).sorted() == [3, 3, 4])
        #expect(entries.flatMap(\.groups).allSatisfy { $0.utf8.count == 64 && $0.allSatisfy(\.isHexDigit) })

        func found(_ remove: () -> Void) throws -> (scope: DiskURLCache.Criteria.Scope, count: Int) {
            storage.asked.withLock { $0 = [] }
            remove()
            let criteria = try #require(storage.asked.withLock { $0.count == 1 ? $0[0] : nil })
            if case .group(let group) = criteria.scope {
                #expect(entries.allSatisfy { $0.groups.contains(group) == criteria.matches($0) })
            }
            // Other processes are told of a key or a URL, and of all else as of everything.
            let concerned = entries.count { $0.isConcerned(by: criteria.message) }
            #expect(entries.allSatisfy { !criteria.matches($0) || $0.isConcerned(by: criteria.message) })
            #expect(concerned == (criteria.message == "everything" ? 3 : 1))
            #expect(criteria.message.utf8.count <= 33)
            return (criteria.scope, entries.count { criteria.matches($0) })
        }
        func isGroup(_ scope: DiskURLCache.Criteria.Scope) -> Bool { if case .group = scope { true } else { false } }

        let tag = try found { cache.removeCachedResponses(tag: "x") }
        #expect(isGroup(tag.scope) && tag.count == 2)
        let host = try found { cache.removeCachedResponses(host: "A.example") }
        #expect(isGroup(host.scope) && host.count == 2)
        let url = try found { cache.invalidate(a.url!) }
        #expect(isGroup(url.scope) && url.count == 1)
        #expect(storage.asked.withLock { $0.last?.message.first } == "u")
        let prefix = try found { cache.removeCachedResponses(urlPrefix: "https://a.example/") }
        #expect(prefix.scope == .anywhere && prefix.count == 2)
        let age = try found { cache.removeCachedResponses(olderThan: .distantFuture) }
        #expect(age.scope == .anywhere && age.count == 3)
        let name = try found { cache.removeCachedResponse(for: a) }
        #expect(name.scope == .name(try #require(cache.key(for: a)).digest.hex, variant: nil) && name.count == 1)
        let all = try found { cache.removeAllCachedResponses() }
        #expect(all.scope == .everything && all.count == 3)
        for text in ["", "n", "n0", "u", "uxyz", "u12345678901234567", "nothing else"] {
            #expect(entries.allSatisfy { $0.isConcerned(by: text) }, "what is not understood is everything")
        }
    }

    /// It finds the entries of a group by its name, so an answer that invalidates several does not make it read all.
    @Test func aStorageIsAskedForEachGroup() throws {
        let storage = RecordingStorage()
        let answer = Invalidation(
            method: "POST", isKeyed: false, concernsURL: false, target: Responses.url("/write"), status: 200,
            fields: ["Cache-Group-Invalidation": "\"x\", \"y\""], isShared: false)
        cache(storage).core.invalidate(try #require(answer))
        let groups = ["x", "y"].map { name in
            EntryGroup.tag(CacheGroups.tag(of: name, origin: "https://example.com")).name
        }
        let asked = storage.asked.withLock { $0.map(\.scope) }
        #expect(asked.count == 2 && groups.allSatisfy { asked.contains(.group($0)) })
    }

    /// Anybody finds a name with the hash of another host in seconds: `Clear-Site-Data`, and more groups than are
    /// compared, are for the answering host alone. An unsafe request is, too, whatever hash its URL has.
    @Test(arguments: [true, false], [true, false])
    func aHostWithTheSameHashRemovesNothing(keepsURLs: Bool, isOwnStorage: Bool) throws {
        let (evil, bank) = (HostName("bfkoafp.evil.test"), HostName("bank.example"))
        #expect(evil.hash == bank.hash)
        var configuration = DiskURLCache.Configuration(memoryCapacity: 0, directory: scratch.appending("hosts"))
        configuration.keepsURLs = keepsURLs
        if isOwnStorage { configuration.diskStorage = RecordingStorage() }
        let cache = DiskURLCache(configuration: configuration)
        let plain = URLRequest(url: URL(string: "https://bank.example/account")!)
        var authorized = plain
        authorized.setValue("Bearer x", forHTTPHeaderField: "Authorization")
        let requests = [plain, authorized]
        func areStored() -> Bool { requests.allSatisfy { cache.contains($0) } }
        func store() {
            for request in requests { cache.storeCachedResponse(Responses.cached(plain.url!, "x"), for: request) }
        }
        let names = (0...CacheGroups.limit).map { "\"\($0)\"" }.joined(separator: ", ")
        let answers = [("GET", ["Clear-Site-Data": "\"cache\""]), ("POST", ["Cache-Group-Invalidation": names])]
        for (method, fields) in answers {
            for host in [evil, bank] {
                store()
                let invalidation = Invalidation(
                    method: method, isKeyed: false, concernsURL: false, target: URL(string: "https://\(host.text)/x"),
                    status: 200, fields: HeaderFields(dictionary: fields), isShared: false)
                cache.core.invalidate(try #require(invalidation))
                #expect(areStored() == (host == evil), "\(method) by \(host.text)")
            }
        }
        store()
        var ofURL = EntryCriteria(uri: "https://bank.example/account")
        ofURL.host = evil
        cache.core.store.disk?.remove(matching: ofURL)
        #expect(areStored())
        ofURL.host = bank
        cache.core.store.disk?.remove(matching: ofURL)
        #expect(requests.allSatisfy { !cache.contains($0) })
    }

    @Test func whatAnotherCacheRemovesGoesFromMemory() throws {
        let storage = RecordingStorage()
        storage.isShared = true
        let cache = cache(storage)
        let (tagged, other) = (
            store("https://a.example/1", tags: ["x"], in: cache), store("https://a.example/2", in: cache)
        )
        let entry = try #require(storage.all.first { $0.groups.count == 3 })
        // As another process does it.
        func removeElsewhere(_ criteria: DiskURLCache.Criteria?) {
            storage.removals.withLock { $0 = [criteria.map { [$0.message] }] }
            storage.removeEntries(matching: criteria ?? .everything)
        }
        #expect(entry.groups.contains { .group($0) == DiskURLCache.Criteria(EntryCriteria(tags: ["x"])).scope })
        removeElsewhere(DiskURLCache.Criteria(EntryCriteria(try #require(cache.key(for: tagged)).diskKey)))
        // A store looks in any case.
        _ = store("https://a.example/3", in: cache)
        #expect(cache.cachedResponse(for: tagged) == nil)
        #expect(cache.cachedResponse(for: other) != nil)
        removeElsewhere(nil)
        _ = store("https://a.example/4", in: cache)
        #expect(cache.cachedResponse(for: other) == nil)
    }

    /// An entry that another process removed between its store and its writing is removed from the storage.
    @Test func aRemovalByOthersOvertakesAWrite() throws {
        let storage = RecordingStorage()
        storage.isShared = true
        let cache = cache(storage)
        _ = store("https://a.example/1", in: cache)
        let request = URLRequest(url: URL(string: "https://a.example/2")!)
        let message = DiskURLCache.Criteria(EntryCriteria(try #require(cache.key(for: request)).diskKey)).message
        // Told while the entry is on its way.
        storage.beforeStore.withLock { $0 = { storage.removals.withLock { $0 = [[message]] } } }
        let tagged = store("https://a.example/2", tags: ["x"], in: cache)
        #expect(cache.cachedResponse(for: tagged) == nil)
        #expect(storage.all.count == 1)
    }
}

/// Keeps all, and remembers what it was asked to remove.
final class RecordingStorage: DiskURLCache.EntryStorage, @unchecked Sendable {
    let entries = Mutex<[String: [DiskURLCache.Entry]]>([:])
    let asked = Mutex<[DiskURLCache.Criteria]>([])
    /// What others removed, for each call.
    let removals = Mutex<[[String]?]>([])
    let beforeStore = Mutex<(@Sendable () -> Void)?>(nil)
    // Set before a cache has the storage.
    var isShared = false
    var name = "storage"

    var all: [DiskURLCache.Entry] { entries.withLock { $0.values.flatMap(\.self) } }
    func entries(named name: String) -> [DiskURLCache.Entry]? { entries.withLock { $0[name] ?? [] } }

    func store(_ entry: DiskURLCache.Entry, named name: String) {
        beforeStore.withLock { announce in
            announce?()
            announce = nil
        }
        entries.withLock { entries in
            entries[name, default: []].removeAll { $0.variant == entry.variant }
            entries[name, default: []].append(entry)
        }
    }

    func removeEntries(matching criteria: DiskURLCache.Criteria) {
        asked.withLock { $0.append(criteria) }
        entries.withLock { entries in
            for name in entries.keys { entries[name]?.removeAll { criteria.matches($0) } }
        }
    }

    func removalsByOthers() -> [String]? {
        removals.withLock { $0.isEmpty ? [] : $0.removeFirst() }
    }

    func flush() {}
}
