import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// However a URL is spelt: rules, key policies and removals by prefix and host see the URL that keys see.
@Suite(.fewAtATime) struct SpellingTests {
    let scratch: ScratchDirectory

    init() throws {
        scratch = try ScratchDirectory()
    }

    /// All of the resource `https://api.example.com/me`.
    static let spellings = [
        "https://api.example.com/me", "https://api.example.com/%6De", "https://API.example.com/me",
        "HTTPS://api.example.com/me", "https://api.example.com:443/me", "https://api.example.com:/me",
        "https://u@api.example.com/me", "https://u:p@api.example.com/me", "https://api.example.com./me",
        "https://%61pi.example.com/me", "https://api.example.com/me#f",
    ]
    static let dotted = ["https://api.example.com/x/../me", "https://api.example.com/x/%2e%2E/me"]

    static let matches: [DiskURLCache.Rule.Match] = [
        .url("https://api.example.com/me*"), .url("HTTPS://u@API.example.com.:443/%6De*"), .url("*/me"),
        .url("*://api.example.com/m*"), .url("*API.example.com/me"), .path("/%6de"),
        .path("/me", host: "API.example.com."),
        .host("Example.com"), .host("api.example.com."),
    ]

    private func makeCache(
        _ rules: [DiskURLCache.Rule] = [], _ configure: (inout DiskURLCache.Configuration) -> Void = { _ in }
    ) throws -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: 1 << 20, diskCapacity: 10 << 20, directory: scratch.appending("cache"))
        configure(&configuration)
        configuration.rules = rules
        return DiskURLCache(configuration: configuration)
    }

    private func request(_ text: String) throws -> URLRequest { URLRequest(url: try #require(URL(string: text))) }

    private func store(_ text: String, in cache: DiskURLCache) throws {
        let request = try request(text)
        cache.storeCachedResponse(Responses.cached(try #require(request.url)), for: request)
    }

    @Test(arguments: matches.indices) func neverIsNever(row: Int) throws {
        let cache = try makeCache([DiskURLCache.Rule(Self.matches[row], DiskURLCache.Options(storage: .never))])
        for text in Self.spellings + Self.dotted {
            try store(text, in: cache)
            #expect(cache.key(for: try request(text)) == nil, "\(text)")
        }
        let other = "https://other.example/menu"
        try store(other, in: cache)
        #expect(cache.contains(try request(other)))
    }

    @Test(arguments: matches.indices) func aKeyPolicyIsApplied(row: Int) throws {
        let rules = [DiskURLCache.Rule(Self.matches[row], DiskURLCache.Options(keyPolicy: .byUser))]
        let cache = try makeCache(rules) { $0.keyPolicies[.byUser] = .standard.includingHeaders("X-User") }
        for text in Self.spellings {
            var alice = try request(text)
            var bob = alice
            alice.setValue("alice", forHTTPHeaderField: "X-User")
            bob.setValue("bob", forHTTPHeaderField: "X-User")
            #expect(cache.key(for: alice) != cache.key(for: bob), "\(text)")
        }
    }

    @Test func aPathIsAComponent() throws {
        let rule = DiskURLCache.Rule(.path("/me"), DiskURLCache.Options(storage: .never))
        func matches(_ text: String) throws -> Bool {
            rule.matches(RuleTarget(DiskURLCache.Request(try request(text))), contentType: nil)
        }
        for path in ["/me", "/me/", "/me/a", "/me?x", "/me;v=1", "/%6de/a"] {
            #expect(try matches("https://h" + path), "\(path)")
        }
        for path in ["/menu", "/", "/a/me", "/ME", "/m", "/?/me"] {
            #expect(try !matches("https://h" + path), "\(path)")
        }
    }

    @Test(arguments: spellings + dotted) func aPrefixRemovesEverySpelling(prefix: String) throws {
        for keepsURLs in [true, false] {
            let cache = try makeCache { $0.keepsURLs = keepsURLs }
            for text in Self.spellings { try store(text, in: cache) }
            try store("https://api.example.com.evil.example/me", in: cache)
            cache.flush()
            cache.removeAllCachedResponses(from: .memory)
            cache.removeCachedResponses(urlPrefix: prefix)
            for text in Self.spellings { #expect(!cache.contains(try request(text)), "\(text) \(keepsURLs)") }
            #expect(cache.contains(try request("https://api.example.com.evil.example/me")))
            for text in Self.spellings { try store(text, in: cache) }
            cache.removeCachedResponses(urlPrefix: prefix)
            for text in Self.spellings { #expect(!cache.contains(try request(text)), "in memory: \(text)") }
            for text in Self.spellings { try store(text, in: cache) }
            cache.removeCachedResponses(host: "API.example.com.")
            for text in Self.spellings { #expect(!cache.contains(try request(text)), "by host: \(text)") }
            cache.removeAllCachedResponses()
        }
    }

    /// Without the URL, whether an entry begins with the prefix is not known: all of the host goes, and no other.
    @Test func withoutURLsAPrefixRemovesTheHost() throws {
        let cache = try makeCache { $0.keepsURLs = false }
        let urls = ["https://a.org/x/1", "https://a.org/y", "https://b.org/x/1"]
        for text in urls { try store(text, in: cache) }
        cache.flush()
        cache.removeAllCachedResponses(from: .memory)
        cache.removeCachedResponses(urlPrefix: "https://a.org/x")
        #expect(try urls.map { cache.contains(try request($0)) } == [false, false, true])
    }

    @Test func aRemovalOfWhatNoURLHasIsTold() async throws {
        let cache = try makeCache()
        var events = cache.events().makeAsyncIterator()
        for text in ["/account", "ftp://h/", "example.com"] {
            cache.removeCachedResponses(urlPrefix: text)
            guard case .problem(let error)? = await events.next() else {
                Issue.record("no event")
                return
            }
            #expect(error.code == .invalidPattern)
            #expect(error.description.contains("\"\(text)\""))
        }
        cache.removeCachedResponses(host: "https://example.com")
        guard case .problem(let error)? = await events.next() else {
            Issue.record("no event")
            return
        }
        #expect(error.code == .invalidPattern)
    }
}

extension String {
    fileprivate static let byUser = "byUser"
}
