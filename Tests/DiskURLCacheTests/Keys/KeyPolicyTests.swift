import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite struct KeyPolicyTests {
    private func request(
        _ url: String, method: String = "GET", headers: [String: String] = [:], body: String? = nil
    ) -> URLRequest {
        var request = URLRequest(url: URL(string: url)!)
        request.httpMethod = method
        for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
        request.httpBody = body.map { Data($0.utf8) }
        return request
    }

    // MARK: Standard

    @Test func theQueryTellsRequestsApart() {
        let policy = DiskURLCache.KeyPolicy.standard
        let one = policy.key(for: request("http://h/a?page=1"))
        #expect(one != policy.key(for: request("http://h/a?page=2")))
        #expect(one != policy.key(for: request("http://h/a")))
        #expect(policy.key(for: request("http://h/a?b=1&a=2")) != policy.key(for: request("http://h/a?a=2&b=1")))
        #expect(one == policy.key(for: request("HTTP://H:80/%61?page=1#frag")))
    }

    @Test func schemeAndPortTellRequestsApart() {
        let policy = DiskURLCache.KeyPolicy.standard
        #expect(policy.key(for: request("http://h/a")) != policy.key(for: request("https://h/a")))
        #expect(policy.key(for: request("http://h:8080/a")) != policy.key(for: request("http://h/a")))
    }

    @Test func headHasTheKeyOfGet() {
        let policy = DiskURLCache.KeyPolicy.standard
        #expect(policy.key(for: request("http://h/a", method: "HEAD")) == policy.key(for: request("http://h/a")))
    }

    @Test(arguments: ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
    func otherMethodsHaveNoKey(method: String) {
        #expect(DiskURLCache.KeyPolicy.standard.key(for: request("http://h/a", method: method)) == nil)
    }

    @Test func aGetWithABodyHasNoKey() {
        #expect(DiskURLCache.KeyPolicy.standard.key(for: request("http://h/a", body: "x")) == nil)
    }

    // MARK: Who the user is

    private func key(
        _ policy: DiskURLCache.KeyPolicy, _ token: String?, account: String? = nil, isShared: Bool = false
    ) -> String? {
        var headers: [String: String] = [:]
        headers["Authorization"] = token
        headers["X-Account"] = account
        let keyed = DiskURLCache.Request(request("http://h/a", headers: headers))
        return policy.decision(for: keyed, RequestKey.Form(isShared: isShared)).key?.text
    }

    @Test func aUserThatTheAppNamesIsFoundWithOtherCredentials() {
        let policy = DiskURLCache.KeyPolicy.standard.identifyingUser { $0.value(forHTTPHeaderField: "X-Account") }
        let anna = key(policy, "Bearer 1", account: "anna")
        #expect(anna == key(policy, "Bearer 2", account: "anna") && anna == key(policy, nil, account: "anna"))
        #expect(anna != key(policy, "Bearer 1", account: "boris"))
        // Without a name, Authorization decides as always.
        #expect(key(policy, "Bearer 1") != key(policy, "Bearer 2"))
        #expect(key(policy, "Bearer 1") == key(.standard, "Bearer 1") && key(policy, nil) == key(.standard, nil))
        // A name cannot look like another part of the key.
        #expect(key(policy, nil, account: "a") != key(policy, nil, account: "a\nhost:x"))
    }

    @Test func authorizationIsLeftOutOnlyIfThePolicySaysSo() {
        let policy = DiskURLCache.KeyPolicy.standard.ignoringAuthorization()
        #expect(key(policy, "Bearer 1") == key(policy, "Bearer 2") && key(policy, "Bearer 1") == key(.standard, nil))
        #expect(key(.standard, "Bearer 1") != key(.standard, "Bearer 2"))
    }

    @Test func aSharedCacheLetsNoPolicySayWhoTheUserIs() {
        for policy in [
            DiskURLCache.KeyPolicy.standard.ignoringAuthorization(), .standard.identifyingUser { _ in "all" },
            .custom { _ in "one" }.ignoringAuthorization(),
        ] {
            #expect(key(policy, "Bearer 1", isShared: true) != key(policy, "Bearer 2", isShared: true))
            for isShared in [false, true] {
                var configuration = DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0)
                configuration.isShared = isShared
                configuration.keyPolicies = ["users": policy]
                let error = DiskURLCache(configuration: configuration).openingError
                #expect(error?.code == (isShared ? .sharedKeyPolicy : nil))
            }
        }
    }

    @Test func aKeyOfTheAppIsNotReadAsAnotherPart() {
        func key(_ text: String, _ headers: [String: String] = [:]) -> RequestKey? {
            DiskURLCache.KeyPolicy.custom { _ in text }.key(for: request("http://h/a", headers: headers))
        }
        #expect(key("a\nhost:other") != key("a", ["Host": "other"]))
        #expect(key("a\nauthorization:b") != key("a", ["Authorization": "b"]))
    }

    @Test func aKeyOfTheAppTakesFieldsAndBodies() {
        let byField = DiskURLCache.KeyPolicy.custom { $0.url?.path }.includingFields("Cookie")
        let keys = [nil, "a", "b"].map { value in
            byField.key(for: request("http://h/a", headers: value.map { ["Cookie": $0] } ?? [:]))
        }
        #expect(Set(keys).count == 3 && !keys.contains(nil))
        let byBody = DiskURLCache.KeyPolicy.custom { $0.url?.path }.includingBody(ofMethods: "POST")
        let bodies = ["1", "2"].map { byBody.key(for: request("http://h/a", method: "POST", body: $0)) }
        #expect(Set(bodies).count == 2 && !bodies.contains(nil))
    }

    @Test func twoCredentialsNeverShareAKey() {
        let policies: [DiskURLCache.KeyPolicy] = [
            .standard, .standard.includingFields("sign"), .standard.sortingQueryItems(), .custom { _ in "one" },
        ]
        for policy in policies {
            let keys = [nil, "Bearer a", "Bearer b", ""].map { value in
                policy.key(for: request("http://h/a", headers: value.map { ["Authorization": $0] } ?? [:]))?.text
            }
            #expect(Set(keys).count == 4)
            #expect(!keys.contains(nil))
        }
    }

    /// Some clients send dot segments as they are, others remove them: the answer may be another resource's (RFC 3986
    /// §5.2.4).
    @Test(arguments: [
        "http://h/up/%2e%2e/a", "http://h/up/../a", "http://h/./a", "http://h/a/%2E", "http://h/a/..",
        "http://h/.%2e/?q",
    ])
    func aPathWithDotSegmentsHasNoKey(url: String) {
        for policy in [DiskURLCache.KeyPolicy.standard, .standard.sortingQueryItems(), .custom { _ in "one" }] {
            guard case .none(.dotSegments) = policy.decision(for: DiskURLCache.Request(request(url))) else {
                Issue.record("\(url) has a key")
                continue
            }
        }
        #expect(DiskURLCache.KeyPolicy.standard.key(for: request("http://h/.well-known/..a?x=/../")) != nil)
    }

    /// User name and trailing dot are sent, so they tell entries apart; the resource is one.
    @Test func userInformationAndTrailingDotTellRequestsApart() throws {
        for policy in [DiskURLCache.KeyPolicy.standard, .custom { _ in "one" }] {
            let keys = try ["http://h/a", "http://u@h/a", "http://v@h/a", "http://h./a"].map {
                try #require(policy.key(for: request($0)))
            }
            #expect(Set(keys.map(\.text)).count == 4)
            #expect(Set(keys.map(\.uri)) == ["http://h/a"])
            #expect(Set(keys.map(\.hostHash)).count == 1)
        }
    }

    @Test func aStreamedBodyHasNoKey() {
        var streamed = request("http://h/a", method: "POST")
        streamed.httpBodyStream = InputStream(data: Data("x".utf8))
        #expect(DiskURLCache.KeyPolicy.standard.includingBody(ofMethods: "POST").key(for: streamed) == nil)
        #expect(DiskURLCache.KeyPolicy.custom { _ in "fixed" }.key(for: streamed) == nil)
    }

    // MARK: Recipes

    @Test func aSignedPostIsOneEntry() {
        let policy = DiskURLCache.KeyPolicy.standard.includingFields("Sign").includingBody(ofMethods: "post")
        func key(_ sign: String?, _ body: String) -> RequestKey? {
            policy.key(
                for: request("http://h/api", method: "POST", headers: sign.map { ["sign": $0] } ?? [:], body: body))
        }
        #expect(key("s", "a=1") == key("s", "a=1"))
        #expect(key("s", "a=1") != key("t", "a=1"))
        #expect(key("s", "a=1") != key("s", "a=2"))
        #expect(key(nil, "a=1") != key("", "a=1"))
        #expect(key("s", "a=1") != policy.key(for: request("http://h/api", headers: ["sign": "s"])))
    }

    /// Foundation takes no line break into a field. An HTTP client of another kind may.
    @Test func aHeaderValueCannotImitateAnother() throws {
        let policy = DiskURLCache.KeyPolicy.standard.includingFields("a", "b")
        func key(_ fields: HeaderFields) throws -> RequestKey {
            var request = DiskURLCache.Request(self.request("http://h/"))
            request.headerFields = fields
            return try #require(policy.decision(for: request).key)
        }
        // Without the lengths both would be `a:1`, `b:2`, `b:absent`.
        #expect(try key(["a": "1", "b": "2\nb:absent"]) != key(["a": "1\nb:2"]))
    }

    @Test func droppedQueryItems() {
        let policy = DiskURLCache.KeyPolicy.standard.droppingQueryItems("utm_source").droppingQueryItems {
            $0.hasPrefix("_")
        }
        let plain = policy.key(for: request("http://h/a?id=1"))
        #expect(plain == policy.key(for: request("http://h/a?utm_source=x&id=1&_t=99")))
        #expect(plain != policy.key(for: request("http://h/a?id=2&utm_source=x")))
        #expect(policy.key(for: request("http://h/a?utm_source=x")) == policy.key(for: request("http://h/a")))
        #expect(DiskURLCache.KeyPolicy.standard.key(for: request("http://h/a?id=1")) == plain)
    }

    @Test func sortedQueryItems() {
        let policy = DiskURLCache.KeyPolicy.standard.sortingQueryItems()
        #expect(policy.key(for: request("http://h/?b=1&a=2")) == policy.key(for: request("http://h/?a=2&b=1")))
        #expect(policy.key(for: request("http://h/?a=1&a=2")) != policy.key(for: request("http://h/?a=2&a=1")))
    }

    @Test func canonicalJSONBodies() {
        let policy = DiskURLCache.KeyPolicy.standard.includingBody(ofMethods: "POST", asJSON: true)
        func key(_ body: String) -> RequestKey? {
            policy.key(for: request("http://h/graphql", method: "POST", body: body))
        }
        #expect(
            key(#"{"query":"{a}","variables":{"x":1,"y":[1,2]}}"#)
                == key(" {\"variables\": {\"y\":[1, 2],\n\"x\":1}, \"query\":\"{a}\"} "))
        #expect(key(#"{"a":1}"#) != key(#"{"a":1.0}"#))
        #expect(key(#"{"a":0.12345678901234567890}"#) != key(#"{"a":0.12345678901234567891}"#))
        #expect(key(#"{"a":[1,2]}"#) != key(#"{"a":[2,1]}"#))
        #expect(key(#"{"a":1,"a":2}"#) != key(#"{"a":2,"a":1}"#))
        #expect(key(#"{"a":1}"#) != key(#"{"a":"1"}"#))
        #expect(key("not json") != key("not  json"))
        for text in ["hello", "10.0.0.1", "[abc]", "01", "1.", "+1", "-", "1e", "True", "{\"a\":x}"] {
            #expect(key(text) != key(text + "\n"), "\(text)")
        }
        for text in ["0", "-0.5e+10", "12E3", "true", "null", "[false, 1]"] { #expect(key(text) == key(text + "\n")) }
        #expect(key(#"{"a":"x y"}"#) != key(#"{"a":"xy"}"#))
        #expect(key(#"{"a":1}"#) == key("{\"a\" \t:\t1}"))
        #expect(key(#"{"a":"x\"y\\"}"#) == key(#"{ "a" : "x\"y\\" }"#))
    }

    @Test func hostileJSONCountsByItsBytes() {
        for text in [
            String(repeating: "[", count: 100_000), "{\"a\":", "\"\\", "[1,]", "{\"a\"}", "1 2", "", "{\"a\":1}}",
            "{\"a\":1,\"\\u0061\":2}",
        ] {
            #expect(CanonicalJSON.text(of: Array(text.utf8)) == nil)
        }
    }

    @Test func aClosureDecides() {
        let policy = DiskURLCache.KeyPolicy.custom { request in
            request.url?.path == "/private" ? nil : "device-1 \(request.url?.path ?? "")"
        }
        #expect(policy.key(for: request("http://h/private")) == nil)
        #expect(
            policy.key(for: request("http://h/a?x=1", method: "POST", body: "b"))
                == policy.key(for: request("http://h/a")))
    }

    @Test func aNameWithBracketsIsDropped() {
        let policy = DiskURLCache.KeyPolicy.standard.droppingQueryItems("f[o]")
        #expect(policy.key(for: request("http://h/a?f[o]=1")) == policy.key(for: request("http://h/a")))
    }

    /// On disk too, if the policy says so: there a response belongs to its URL.
    @Test func aClosuresTextIsSharedByURLsThatThePolicyTakesForOne() throws {
        let policy = DiskURLCache.KeyPolicy.custom { $0.url?.path }
        let urls = ["http://h/a?x=1", "http://h/a?x=2", "http://h/a"]
        #expect(Set(urls.map { policy.key(for: request($0)) }).count == 1)
        let whole = policy.droppingQueryItems { _ in true }
        let keys = try urls.map { try #require(whole.key(for: request($0))).diskKey }
        #expect(keys.allSatisfy { $0 == keys[0] })
    }

    // MARK: Digests

    @Test func diskKeysHoldDigestsOfAllThatMatters() throws {
        let policy = DiskURLCache.KeyPolicy.standard.droppingQueryItems("t")
        let first = try #require(policy.key(for: request("http://h/a?t=1"))).diskKey
        let second = try #require(policy.key(for: request("http://h/a?t=2"))).diskKey
        #expect(first == second)
        #expect(first.resource == second.resource, "one resource, for invalidation")
        let other = try #require(policy.key(for: request("http://g/a?t=1"))).diskKey
        #expect(first != other)
        #expect(first.name != other.name)
        #expect(first.hostHash != other.hostHash)
        #expect(first.hostHash == second.hostHash)
    }

    /// The request's own `Host` field is part of what is asked: two hosts share no entry (RFC 9110 §7.1).
    @Test func theHostFieldTellsRequestsApart() throws {
        func key(_ host: String?, _ policy: DiskURLCache.KeyPolicy = .standard) throws -> RequestKey {
            var request = request("http://example.com:8080/a")
            request.setValue(host, forHTTPHeaderField: "Host")
            return try #require(policy.key(for: request))
        }
        for policy in [DiskURLCache.KeyPolicy.standard, .custom { _ in "one" }] {
            #expect(try key("a.example", policy) != key("b.example", policy))
            #expect(try key("a.example", policy) != key(nil, policy))
            #expect(try key("A.example", policy) == key("a.example", policy))
            #expect(try key("Example.com:8080", policy) == key(nil, policy))
            #expect(try key("a.example", policy).uri == key(nil, policy).uri, "one URL, for invalidation")
        }
    }

    /// The port that the scheme implies, and the letters' case, are the same host, in the field as in the URL.
    @Test(arguments: [
        ("http://example.com/a", "example.com:80", true), ("http://example.com:80/a", "Example.com", true),
        ("https://example.com/a", "example.com:443", true), ("http://[::1]/a", "[0:0::1]:80", true),
        ("http://example.com/a", "example.com:", true), ("https://example.com/a", "example.com:80", false),
        ("http://example.com:8080/a", "example.com", false), ("http://example.com/a", "example.com.", false),
        ("http://example.com/a", "user@example.com", false), ("http://example.com/a", "example.com/b", false),
    ])
    func theHostFieldIsComparedAsAHostOfAURL(url: String, host: String, isTheURLs: Bool) throws {
        func key(_ host: String?) throws -> RequestKey {
            var request = request(url)
            request.setValue(host, forHTTPHeaderField: "Host")
            return try #require(DiskURLCache.KeyPolicy.standard.key(for: request))
        }
        #expect(try (key(host) == key(nil)) == isTheURLs)
    }

    /// Names on disk must stay the same from version to version.
    @Test func namesAreStable() throws {
        let key = try #require(DiskURLCache.KeyPolicy.standard.key(for: request("http://example.com/a?b=1"))).diskKey
        let halves = ["http://example.com/a?b=1", "example.com"].map { SHA256Digest.digest(of: $0).hex.prefix(32) }
        #expect(key.digest.hex == halves.joined())
        #expect(key.name.hex == "377e04413498c640126026a221c8e872")
    }
}
