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

    /// Each has a folder of its own. If two share one, what the first removed before it saw the second may cost the
    /// second a miss.
    private func makeCache(
        _ rules: [DiskURLCache.Rule] = [], _ configure: (inout DiskURLCache.Configuration) -> Void = { _ in }
    ) throws -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: 1 << 20, diskCapacity: 10 << 20, directory: scratch.appending(UUID().uuidString))
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
        let cache = try makeCache([DiskURLCache.Rule(for: Self.matches[row], storage: .never)])
        for text in Self.spellings + Self.dotted {
            try store(text, in: cache)
            #expect(cache.key(for: try request(text)) == nil, "\(text)")
        }
        let other = "https://other.example/menu"
        try store(other, in: cache)
        #expect(cache.contains(try request(other)))
    }

    /// Foundation writes some of them in another way than the app does.
    @Test(arguments: [
        ("https://h/a?f[o]=*", "https://h/a?f[o]=me"), ("https://h/a?f[o]=*", "https://h/a?f%5Bo%5D=me"),
        ("https://[2001:db8:0:0::1]/*", "https://[2001:DB8::1]/a"), ("https://h:0443/*", "https://h/a"),
        ("*://h:443/*", "https://h/a"), ("*://h:443/*", "http://h:443/a"), ("http*://h:80/*", "http://h:80/a"),
        ("https://h:08080/*", "https://h:8080/a"), ("https://h:*", "https://h:8443/a"),
        ("https://h:*/a", "https://h:8443/a"), ("https://h:*/a", "https://h/a"), ("https://h:4*/a", "https://h:443/a"),
        ("https://h:*", "https://h/a"),
        ("*://h*:443", "https://h.example/"), ("https://*", "https://h/a"),
        ("*//[2001:db8::1]/*", "https://[2001:db8::1]/a"), ("*[2001:db8::1]*", "https://[2001:db8::1]/a"),
        ("https://[2001:*", "https://[2001:db8::1]/a"), ("https://*:8443", "https://h:8443/"),
        ("*.example.com:443/a", "https://h.example.com/a"), ("*.example.com./a", "https://h.example.com/a"),
        ("*//API.example.com/a", "https://api.example.com/a"), ("*//user@h:443/a", "https://h/a"),
        ("*//bücher.example/a", "https://xn--bcher-kva.example/a"), ("*//a", "https://h/b//a"),
    ])
    func aPatternMatchesWhatItNames(pattern: String, url: String) throws {
        let cache = try makeCache([DiskURLCache.Rule(for: .url(pattern), storage: .never)])
        #expect(try cache.openingError == nil && cache.key(for: request(url)) == nil)
        #expect(try cache.key(for: request("http://h:81/a")) != nil)
    }

    /// What looks like a user or a dot of a host may be something else.
    @Test(arguments: ["*@*", "*@h*", "*./*", "*.png", "*a?q=1", "*//@*"])
    func aPatternMatchesNothingElse(pattern: String) throws {
        let cache = try makeCache([DiskURLCache.Rule(for: .url(pattern), storage: .never)])
        for url in ["https://h/a", "https://h/a.png/", "https://h/a/?q=1"] {
            #expect(try cache.key(for: request(url)) != nil, "\(url)")
        }
    }

    @Test func noRequestGoesToPort0() throws {
        #expect(try makeCache([DiskURLCache.Rule(for: .url("https://h:0/*"), storage: .never)]).openingError != nil)
    }

    @Test func bracketsAreWrittenInOneWay() throws {
        let cache = try makeCache()
        for url in ["https://h/a[1]?f[o]=me", "https://h/a%5B1%5D?f%5Bo%5D=me"] {
            #expect(URLCanonicalizer.canonical(url) == "https://h/a%5B1%5D?f%5Bo%5D=me")
        }
        try store("https://h/a?f[o]=me", in: cache)
        cache.removeCachedResponses(urlPrefix: "https://h/a?f[o]=")
        #expect(!cache.contains(try request("https://h/a?f[o]=me")))
    }

    @Test(arguments: matches.indices) func aKeyPolicyIsApplied(row: Int) throws {
        let rules = [DiskURLCache.Rule(for: Self.matches[row], keyPolicy: .byUser)]
        let cache = try makeCache(rules) { $0.keyPolicies[.byUser] = .standard.includingFields("X-User") }
        for text in Self.spellings {
            var alice = try request(text)
            var bob = alice
            alice.setValue("alice", forHTTPHeaderField: "X-User")
            bob.setValue("bob", forHTTPHeaderField: "X-User")
            #expect(cache.key(for: alice) != cache.key(for: bob), "\(text)")
        }
    }

    @Test func aPathIsAComponent() throws {
        let rule = DiskURLCache.Rule(for: .path("/me"), storage: .never)
        func matches(_ text: String) throws -> Bool {
            rule.mayApply(
                to: DiskURLCache.Request(try request(text)), canonicalURL: URLCanonicalizer.canonical(text), json: nil)
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

    /// Each form in which Foundation gives an international name is that name, for removals, prefixes and rules.
    @Test(arguments: [
        "bücher.example", "BÜCHER.example", "bu\u{308}cher.example", "b%C3%BCcher.example",
        "xn--bcher-kva.example", "bücher.example.", "ｂücher。example",
    ])
    func internationalNames(_ name: String) throws {
        let url = "http://xn--bcher-kva.example/a"
        #expect(URLCanonicalizer.host(name) == "xn--bcher-kva.example")
        for remove: (DiskURLCache) -> Void in [
            { $0.removeCachedResponses(host: name) }, { $0.removeCachedResponses(urlPrefix: "http://\(name)/a") },
            { $0.removeCachedResponses(urlPrefix: "http://u:p@\(name):80/a?b=é#c") },
            { $0.removeCachedResponses(urlPrefix: "HTTP://\(name)") },
        ] {
            let cache = try makeCache()
            try store("http://bücher.example/a", in: cache)
            try store("http://bücher.example/a?b=é", in: cache)
            #expect(cache.contains(try request(url)))
            cache.flush()
            cache.removeAllCachedResponses(from: .memory)
            remove(cache)
            #expect(!cache.contains(try request(url + "?b=%C3%A9")))
            cache.removeAllCachedResponses()
        }
        for match: DiskURLCache.Rule.Match in [
            .host(name), .path("/a", host: name), .url("http://\(name)/*"), .url("*://\(name)/a"),
            .url("http://\(name):80/a"),
        ] {
            let cache = try makeCache([DiskURLCache.Rule(for: match, storage: .never)])
            #expect(cache.openingError == nil, "\(match)")
            #expect(cache.key(for: try request("http://bücher.example/a")) == nil, "\(match)")
            #expect(cache.key(for: try request("http://other.example/a")) != nil, "\(match)")
        }
    }

    /// `URL.host` has no brackets, and may have the zone's percent sign in either form.
    @Test(arguments: [
        ("http://[2001:db8::a]:8080/a", ["[2001:DB8::A]", "2001:db8::a", "2001:db8:0::0:A"]),
        ("http://[::1]/a", ["[::1]", "::1", "0:0:0:0:0:0:0:1"]),
        (
            "http://[fe80::1%25eth0]/a",
            ["[fe80::1%25eth0]", "fe80::1%25eth0", "fe80::1%eth0", "FE80::1%eth0", "[fe80::1%eth0]"]
        ),
    ])
    func addressesWithColons(_ url: String, _ names: [String]) throws {
        let foundation = try #require(URL(string: url))
        let given = [
            foundation.host, foundation.host(percentEncoded: true), foundation.host(percentEncoded: false),
            URLComponents(string: url)?.host,
        ]
        for name in names + given.compactMap({ $0 }) {
            let cache = try makeCache()
            try store(url, in: cache)
            #expect(cache.contains(try request(url)))
            cache.removeCachedResponses(host: name)
            #expect(!cache.contains(try request(url)), "\(name)")
            let ruled = try makeCache([DiskURLCache.Rule(for: .host(name), storage: .never)])
            #expect(ruled.openingError == nil, "\(name)")
            #expect(ruled.key(for: try request(url)) == nil, "\(name)")
        }
        for text in ["example.com:80", "::1:80000", ":", "a:b", "[::1", "::1]", "::1%"] {
            #expect(URLCanonicalizer.host(text) == nil, "\(text)")
        }
    }

    @Test func patternsWithStarsInInternationalHosts() throws {
        for pattern in ["*.bücher.example/a", "http://*.BÜCHER.example/a", "*://img.bücher.*", "*é/a"] {
            let cache = try makeCache([DiskURLCache.Rule(for: .url(pattern), storage: .memoryOnly)])
            #expect(cache.openingError == nil, "\(pattern)")
            let text = pattern == "*é/a" ? "http://h.example/é/a" : "http://img.bücher.example/a"
            #expect(cache.resolve(try request(text)).options.storage == .memoryOnly, "\(pattern)")
        }
        let cache = try makeCache([DiskURLCache.Rule(for: .url("http://bü*.example/"), isPinned: true)]
        )
        #expect(cache.openingError?.description.contains("write international labels whole") == true)
    }

    /// `getaddrinfo` takes the numbers for 10.0.0.5, and for clients an escaped name is another host, or none.
    @Test(arguments: [
        "167772165", "0xa.0.0.5", "012.0.0.5", "10.5", "10.0.0.256", "0xa000005", "10.0.0.0xf", "0XFE000005",
        "[::ffff:10.0.0.5]",
        "%EF%BD%93ecret.example", "secret%E3%80%82example", "a%20b", "[nonsense]", "1.2.3.4.5", "h:0", "h:000",
    ])
    func aHostThatClientsReadDifferentlyHasNoKey(_ host: String) throws {
        let request = try #require(DiskURLCache.Request(method: "GET", url: "http://\(host)/a"))
        let decision = DiskURLCache.KeyPolicy.standard.decision(for: request)
        #expect(decision.refusal?.code == "unusual-host", "\(host)")
        #expect(!URLCanonicalizer.isNormal("http://\(host)/a"))
    }

    @Test func hostsThatLookLikeNumbersButAreNone() throws {
        for host in ["10.0.0.5", "127.0.0.1", "1a.example", "4you", "0x1g", "10.example", "a.b.c.1d", "_a.example"] {
            #expect(URLCanonicalizer.canonical("http://\(host)/") == "http://\(host)/")
        }
        #expect(URLCanonicalizer.canonical("http://[0:0::0:1]:8080/") == "http://[::1]:8080/")
        #expect(URLCanonicalizer.canonical("http://[FE80::1%25eth0]/") == "http://[fe80::1%25eth0]/")
        #expect(URLCanonicalizer.host("[0:0:0:0:0:0:0:1]") == "[::1]")
    }

    /// No request gets past a rule that could not be read, and that is said where one looks.
    @Test func aRuleThatCannotBeSaysWhatItKeepsOut() throws {
        let cache = try makeCache([
            DiskURLCache.Rule(for: .contentType("image/*"), isPinned: true),
            DiskURLCache.Rule(for: .host("https://example.com"), storage: .never),
            DiskURLCache.Rule(for: .path("me"), storage: .memoryOnly),
            DiskURLCache.Rule(for: .host("a b"), isPinned: true),
        ])
        let error = try #require(cache.openingError)
        #expect(error.code == .invalidRule(index: 1))
        for words in [
            "Rule 1: \"https://example.com\" is not a host", "the rule keeps every response out of the cache",
            "Rule 2: \"me\" is not a path", "the rule keeps every response off the disk",
            "Rule 3: \"a b\" is not a host",
        ] {
            #expect(error.description.contains(words), "\(words)")
        }
        let reason = try #require(cache.resolve(try request("http://other.example/")).decision.refusal)
        #expect(reason.code == "never")
        #expect(reason.description.hasPrefix("rule 1 matches nothing, and keeps every response out"))
        #expect(reason.advice?.contains("is not a host") == true)
    }

    @Test func eachRuleThatCannotBeIsAProblemOfItsOwn() {
        let rules = ["", "a b"].map { DiskURLCache.Rule(for: .host($0), isPinned: true) }
        let problems = RuleCheck.problems(in: rules, keyPolicies: [])
        #expect(problems.map(\.code) == [.invalidRule(index: 0), .invalidRule(index: 1)])
        #expect(RuleCheck.summary(of: problems)?.code == .invalidRule(index: 0))
    }

    @Test func theReasonNamesTheRuleThatSaidNever() throws {
        let cache = try makeCache([
            DiskURLCache.Rule(for: .host("a.example"), isPinned: true),
            DiskURLCache.Rule(for: .path("/me", host: "a.example"), storage: .never),
        ])
        func reason(_ request: URLRequest) -> DiskURLCache.Reason? {
            cache.resolve(request).decision.refusal
        }
        #expect(
            reason(try request("http://a.example/me"))?.description
                == "rule 1 (path /me of a.example) says storage: .never")
        #expect(reason(try request("http://a.example/me")) == .never)
        var own = try request("http://a.example/you")
        #expect(reason(own) == nil)
        own.cacheOptions = DiskURLCache.Options(storage: .never)
        #expect(reason(own)?.description == "the request's options say storage: .never")
    }

    /// If URLs are not kept, it is not known which entries begin with the prefix: all entries of the host are removed,
    /// and those of no other host.
    @Test(arguments: ["https://a.org/x", "https://a.org/x/"])
    func withoutURLsAPrefixRemovesTheHost(prefix: String) throws {
        let cache = try makeCache { $0.keepsURLs = false }
        let urls = ["https://a.org/x/1", "https://a.org/y", "https://b.org/x/1"]
        for text in urls { try store(text, in: cache) }
        cache.flush()
        cache.removeAllCachedResponses(from: .memory)
        cache.removeCachedResponses(urlPrefix: prefix)
        #expect(try urls.map { cache.contains(try request($0)) } == [false, false, true])
    }

    /// The index knows how the paths of the records begin. A pin writes the head of a record again.
    @Test(arguments: [
        "https://api.example.com/a/", "https://API.example.com:443/%61/", "https://api.example.com/x/../a/m",
    ])
    func aPrefixWithAFolderRemovesEverySpelling(prefix: String) throws {
        let cache = try makeCache()
        let urls = [
            "https://api.example.com/a/me", "https://API.example.com:443/%61/me?x",
            "https://u@api.example.com./b/../a/me/1#f",
        ]
        for text in urls { try store(text, in: cache) }
        #expect(cache.setPinned(true, for: try request(urls[1])))
        let other = "https://api.example.com/b/me"
        try store(other, in: cache)
        cache.flush()
        cache.removeAllCachedResponses(from: .memory)
        cache.removeCachedResponses(urlPrefix: prefix)
        #expect(try (urls + [other]).map { cache.contains(try request($0)) } == [false, false, false, true])
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
