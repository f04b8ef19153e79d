import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Groups of responses (RFC 9875), and `Clear-Site-Data`: what one answer says about many stored ones.
@Suite(.fewAtATime) struct CacheGroupsTests {
    // MARK: The fields

    @Test(
        arguments: [
            (["Cache-Groups": "\"a\", \"B c\";x=1, \"\""], ["a", "B c", ""]), (["Cache-Groups": "a"], []),
            (["Cache-Groups": "\"a\", b"], []), (["Cache-Groups": "\"a\","], []), (["Cache-Groups": "(\"a\")"], []),
            (["Cache-Groups": ""], []), ([:], []), (["Surrogate-Key": "x y"], []),
        ] as [(HeaderFields, [String])])
    func groupsAreAListOfStrings(fields: HeaderFields, expected: [String]) {
        #expect(CacheGroups.names(of: fields) == expected)
    }

    @Test func fieldsOfOlderServersNameGroupsToo() {
        let fields: HeaderFields = [
            "Cache-Groups": "\"a\"", "Surrogate-Key": " x  y\tz", "Cache-Tag": "p,q , r", "Other": "o",
        ]
        #expect(
            CacheGroups.names(of: fields, keyFields: ["surrogate-key", "Cache-Tag", "xkey"])
                == ["a", "x", "y", "z", "p", "q", "r"])
    }

    /// RFC 9875 §2: at least 32 groups of 32 characters. Case matters, and so does the origin.
    @Test func eachGroupOfAnOriginHasATagOfItsOwn() {
        let names = (0..<64).map { String(repeating: "g", count: 32) + "\($0)" } + ["a", "A", "a "]
        let origins = ["https://a.example", "http://a.example", "https://a.example:8443", "https://b.example"]
        let tags = origins.flatMap { origin in names.map { CacheGroups.tag(of: $0, origin: origin) } }
        #expect(Set(tags).count == tags.count && tags.allSatisfy(CacheGroups.isGroup))
    }

    @Test(arguments: [
        ("POST", false, 200, ["a"]), ("POST", true, 200, ["a"]), ("DELETE", false, 500, ["a"]),
        ("FOO", false, 404, ["a"]),
        ("GET", false, 200, []), ("HEAD", false, 200, []), ("QUERY", true, 200, []), ("OPTIONS", false, 200, []),
    ])
    func onlyAnAnswerToAnUnsafeMethodInvalidates(method: String, isKeyed: Bool, status: Int, groups: [String]) {
        let invalidation = Invalidation(
            method: method, isKeyed: isKeyed, concernsURL: true, target: Responses.url("/a"), status: status,
            fields: ["Cache-Group-Invalidation": "\"a\""], isShared: false)
        #expect((invalidation?.groups ?? []) == groups)
        #expect((invalidation?.urls ?? []).isEmpty == (isKeyed || status != 200 || groups.isEmpty))
    }

    @Test(arguments: [
        ("\"cache\"", "https://h/", false, true), ("\"cookies\", \"cache\"", "HTTPS://h/", false, true),
        ("\"*\"", "https://h/", false, true), ("\"cache\"", "http://h/", false, false),
        ("\"cache\"", "https://h/", true, false), ("cache", "https://h/", false, false),
        ("\"cookies\"", "https://h/", false, false), ("\"CACHE\"", "https://h/", false, false),
        ("\"cookies, cache\"", "https://h/", false, false), ("*", "https://h/", false, false),
    ])
    func onlyASecureOriginEmptiesAPrivateCache(value: String, url: String, isShared: Bool, empties: Bool) {
        let invalidation = Invalidation(
            method: "GET", isKeyed: false, concernsURL: true, target: URL(string: url), status: 200,
            fields: ["Clear-Site-Data": value],
            isShared: isShared)
        #expect((invalidation?.emptiesHost ?? false) == empties)
    }

    // MARK: In a cache

    /// Answers each request with fields that the test sets, and a lifetime.
    private final class Site: Sendable {
        let cache: DiskURLCache
        let fields = Mutex<[String: HeaderFields]>([:])
        let status = Mutex(200)

        init(_ configure: (inout DiskURLCache.Configuration) -> Void = { _ in }, in scratch: ScratchDirectory) {
            var settings = DiskURLCache.Configuration(
                memoryCapacity: 1 << 20, diskCapacity: 10 << 20, directory: scratch.url)
            configure(&settings)
            cache = DiskURLCache(configuration: settings)
        }

        /// Returns the status that is delivered.
        @discardableResult
        func load(_ url: String, method: String = "GET", _ fields: HeaderFields = [:], status: Int = 200) async throws
            -> Int
        {
            let network = MemoryTransport { _, exchange in
                var fields = fields
                if fields["Cache-Control"] == nil { fields.append("Cache-Control", "max-age=60") }
                exchange.head(status, fields)
                if status != 304 { exchange.piece("body") }
                exchange.end()
            }
            var request = URLRequest(url: URL(string: url)!)
            request.httpMethod = method
            return try await LoadReader(request, from: cache, over: network).answer().response.statusCode
        }

        /// Those of the URLs that are stored, in memory and on disk.
        func stored(_ urls: [String]) -> [String] {
            let found = urls.filter { cache.contains(URLRequest(url: URL(string: $0)!)) }
            cache.removeAllCachedResponses(from: .memory)
            #expect(urls.filter { cache.contains(URLRequest(url: URL(string: $0)!)) } == found)
            return found
        }
    }

    let scratch: ScratchDirectory

    init() throws { scratch = try ScratchDirectory() }

    private static let urls = [
        "https://h.example/1", "https://h.example/2", "https://h.example/3", "https://h.example:444/1",
        "https://other.example/1",
    ]

    /// Same origin only, and no further: what shares another group with a removed response stays.
    @Test func anAnswerRemovesTheGroupsThatItNames() async throws {
        let site = Site(in: scratch)
        let urls = Self.urls
        for (url, groups) in zip(urls, ["\"x\", \"y\"", "\"z\", \"x\"", "\"y\"", "\"x\"", "\"x\""]) {
            try await site.load(url, ["Cache-Groups": groups])
        }
        try await site.load("https://h.example/read", ["Cache-Group-Invalidation": "\"x\""])
        #expect(site.stored(urls) == urls)
        let events = site.cache.events()
        try await site.load("https://h.example/write", method: "POST", ["Cache-Group-Invalidation": "\"x\", \"w\""])
        #expect(site.stored(urls) == Array(urls.dropFirst(2)))
        var reasons: [DiskURLCache.Reason] = []
        for event in await events.elements(upTo: "the report of the load", \.isLoad) {
            guard case .invalidated(let url, let reason) = event else { continue }
            #expect(url?.path == "/write" && reason.description.contains("x, w"))
            reasons.append(reason)
        }
        #expect(reasons.map(\.code) == ["group-invalidation"])
    }

    /// All groups are one removal. An answer that names thousands empties its origin by one.
    @Test(arguments: [CacheGroups.limit, CacheGroups.limit + 1]) func manyGroupsAreOneRemoval(count: Int) async throws {
        let site = Site(in: scratch)
        let urls = [
            "https://h.example/in", "https://h.example/out", "https://other.example/in", "http://h.example/in",
            "https://h.example:8443/in", "https://h.example/last",
        ]
        for (url, group) in zip(urls, ["\"g0\"", "\"another\"", "\"g0\"", "\"g0\"", "\"g0\"", "\"g127\""]) {
            try await site.load(url, ["Cache-Groups": group])
        }
        let names = (0..<count).map { "\"g\($0)\"" }.joined(separator: ",")
        try await site.load("https://h.example/write", method: "POST", ["Cache-Group-Invalidation": names])
        #expect(site.stored(urls) == Array(urls.dropFirst(count > CacheGroups.limit ? 2 : 1).dropLast()))
    }

    /// An origin chooses how many groups a response belongs to, and an answer invalidates. If each were compared with
    /// each, this would take minutes.
    @Test func manyTagsAreNotComparedWithEachOther() {
        let tags = (0..<40_000).map { "cache-group \($0)" }
        let others = tags.map { "\($0)'" }
        let joined = tags.joined(withTags: others + ["e\u{301}", "\u{e9}", "\u{e9}"] + tags)
        #expect(joined.count == 80_002)
        #expect(joined == joined.sorted())
        var entry = StoredEntry.test(Data(), tags: joined).metadata
        for (wanted, isMatch) in [("e\u{301}", true), ("another", false)] {
            let criteria = EntryCriteria(tags: others.map { "\($0)'" } + [wanted])
            #expect(criteria.matches(entry) == isMatch)
        }
        entry.tags = ["\u{e9}"]
        let one = EntryCriteria(tags: others + ["\u{e9}"])
        #expect(one.matches(entry))
        #expect(!EntryCriteria(tags: ["e\u{301}"]).matches(entry))
        #expect(!EntryCriteria(tags: others + ["e\u{301}"]).matches(entry))
    }

    /// A guest has no index: it reads the head of each record for one removal. And what the groups do not match is
    /// stored, however many they are.
    @Test(arguments: [true, false]) func manyGroupsAreOneRemovalOfAGuest(marksStale: Bool) async throws {
        let directory = try SharedDirectory()
        let owner = directory.open()
        let names = (0..<CacheGroups.limit).map { "g\($0)" }
        let tags = (names + ["another"]).map { CacheGroups.tag(of: $0, origin: "https://example.com") }
        let paths = ["/0", "/7", "/127", "/128"]
        for path in paths { owner.put("stored", path, tags: [tags[Int(path.dropFirst())!], "account"]) }
        let files = FaultyFileSystem()
        let guest = directory.open(files) { $0.marksGroupsStale = marksStale }
        let late = await HeldLoad("/late", from: guest)
        let list = names.map { "\"\($0)\"" }.joined(separator: ",")
        let answer = try #require(
            Invalidation(
                method: "POST", isKeyed: false, concernsURL: false, target: Responses.url("/write"), status: 200,
                fields: ["Cache-Group-Invalidation": list], isShared: false))
        // Its passes read heads, too.
        guest.core.store.maintenance.pause()
        _ = files.takeCalls()
        guest.core.invalidate(answer)
        let calls = files.takeCalls()
        guest.core.store.maintenance.resume()
        #expect(calls.count { $0.operation == .list && $0.name == "records" } == 1)
        #expect(calls.count { $0.operation == .open && $0.isRecord } <= 10 * paths.count)
        let isStale = paths.map { path in
            owner.look()
            let key = owner.key(for: Responses.request(path))!
            guard let found = owner.store.lookup(key).variants().first else { return true }
            return found.metadata.http?.staleSince != nil
        }
        #expect(isStale == [true, true, true, false])
        try await late.end("late")
        #expect(guest.found("/late") == "late")
    }

    /// A stored response is in the groups that its last answer named. The app's own tags stay.
    @Test func aNewAnswerNamesItsGroupsAnew() async throws {
        let site = Site({ $0.rules = [.init(for: .host("h.example"), tags: ["mine"])] }, in: scratch)
        let urls = [Self.urls[0]]
        let stale: HeaderFields = ["Cache-Control": "max-age=0", "ETag": "\"1\"", "Cache-Groups": "\"x\""]
        for (fields, status) in [
            (["Cache-Groups": "\"y\"", "ETag": "\"1\""] as HeaderFields, 304), (["Cache-Groups": "\"y\""], 200),
        ] {
            try await site.load(urls[0], stale)
            try await site.load(urls[0], fields, status: status)
            site.cache.removeCachedResponses(group: "x", of: URL(string: urls[0])!)
            #expect(site.stored(urls) == urls)
            site.cache.removeCachedResponses(group: "y", of: URL(string: "https://h.example:443")!)
            #expect(site.stored(urls) == [])
        }
        // A 304 that names none changes nothing.
        try await site.load(urls[0], stale)
        try await site.load(urls[0], ["ETag": "\"1\""], status: 304)
        site.cache.removeCachedResponses(group: "x", of: URL(string: urls[0])!)
        #expect(site.stored(urls) == [])
        try await site.load(urls[0], ["Cache-Groups": "\"x\""])
        site.cache.removeCachedResponses(tag: "mine")
        #expect(site.stored(urls) == [])
    }

    @Test func theAppRemovesAGroupByTheFieldsOfOlderServers() async throws {
        let site = Site({ $0.groupFields = ["Surrogate-Key"] }, in: scratch)
        for url in Self.urls { try await site.load(url, ["Surrogate-Key": "news sport", "Cache-Tag": "news2"]) }
        site.cache.removeCachedResponses(group: "news2", of: URL(string: Self.urls[0])!)
        site.cache.removeCachedResponses(group: "New", of: URL(string: Self.urls[0])!)
        site.cache.removeCachedResponses(tag: "news")
        #expect(site.stored(Self.urls) == Self.urls)
        site.cache.removeCachedResponses(group: "news", of: URL(string: "https://other.example/")!)
        #expect(site.stored(Self.urls) == Array(Self.urls.dropLast()))
        site.cache.removeCachedResponses(group: "sport", of: URL(string: "mailto:a@h.example")!)
        #expect(site.stored(Self.urls) == Array(Self.urls.dropLast()))
    }

    /// The answer that says so is not kept either, and other hosts lose nothing.
    @Test(arguments: [true, false]) func clearSiteDataRemovesWhatAHostHas(isShared: Bool) async throws {
        let site = Site({ $0.isShared = isShared }, in: scratch)
        for url in Self.urls { try await site.load(url) }
        try await site.load("http://h.example/out", ["Clear-Site-Data": "\"cache\""])
        #expect(site.stored(Self.urls) == Self.urls)
        let logout = "https://h.example/out"
        try await site.load(logout, ["Clear-Site-Data": "\"cache\", \"storage\""])
        #expect(site.stored(Self.urls + [logout]) == (isShared ? Self.urls + [logout] : [Self.urls[4]]))
    }

    /// It does not answer in the place of what has removed it.
    @Test(arguments: [DiskURLCache.Layer.memory, .disk], ["GET", "POST"])
    func anErrorThatRemovesAStoredResponseIsDelivered(layer: DiskURLCache.Layer, method: String) async throws {
        let policy = DiskURLCache.KeyPolicy.custom { request in request.url?.absoluteString }
        let site = Site({ if method == "POST" { $0.keyPolicy = policy } }, in: scratch)
        let url = "https://h.example/a"
        let fields: HeaderFields = ["Cache-Control": "max-age=0, stale-if-error=60", "Cache-Groups": "\"g\""]
        try await site.load(url, method: method, fields)
        if layer == .disk {
            site.cache.flush()
            site.cache.removeAllCachedResponses(from: .memory)
        }
        var removal: HeaderFields = ["Cache-Control": "no-store"]
        removal.set(
            method == "GET" ? "Clear-Site-Data" : "Cache-Group-Invalidation", method == "GET" ? "\"cache\"" : "\"g\"")
        #expect(try await site.load(url, method: method, removal, status: 503) == 503)
        #expect(site.stored([url]) == [])
    }

    @Test(arguments: [true, false]) func whyNamesTheGroups(marksStale: Bool) async throws {
        let site = Site({ $0.marksGroupsStale = marksStale }, in: scratch)
        try await site.load(Self.urls[0], ["Cache-Groups": "\"x y\""])
        var request = URLRequest(url: URL(string: Self.urls[0])!)
        let stored = "\(site.cache.explanation(for: request))"
        #expect(stored.contains("groups \"x y\" of its origin") && stored.contains("removes it") != marksStale)
        request.httpMethod = "POST"
        let answer = Responses.http(request.url!, fields: ["Cache-Group-Invalidation": "\"x y\""])
        let received = "\(site.cache.explanation(for: request, response: answer))"
        #expect(received.contains("named the groups x y") && received.contains("are marked stale") == marksStale)
    }

    /// A storage of the app's finds a group by its one name, in no other process than all do.
    @Test func aStorageIsAskedForOneGroup() throws {
        let parts = try #require(URLCanonicalizer.parts(of: Self.urls[0]))
        let tag = CacheGroups.tag(of: "x", origin: parts.origin)
        let scope = DiskURLCache.Criteria(EntryCriteria(groups: ["x"], of: parts)).scope
        #expect(scope == .group(EntryGroup.tag(tag).name))
    }
}
