import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The key of a plain request is made by a short way. It is the key that the general way makes, for every request.
@Suite(.fewAtATime) struct PlainKeyTests {
    private var random = TestRandom(TestLength.fuzzSeed ?? 1)

    /// Mostly plain, and everything that makes a request no plain one.
    private mutating func request() -> URLRequest? {
        func isRare() -> Bool { Int.random(in: 0..<12, using: &random) == 0 }
        func pick(_ usual: [String], _ rare: [String]) -> String {
            (isRare() ? rare : usual).randomElement(using: &random)!
        }
        var text = pick(["http://", "https://"], ["HTTP://", "ftp://"])
        text += pick(["example.com", "a.b-c.org"], ["Example.com", "example.com.", "[::1]", "u:p@h.org", "%41.de"])
        text += pick([""], [":80", ":443", ":8080", ":08080", ":"])
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            text += "/"
            text += pick(
                ["a", "b/c", "x.y", "%2F", "%C3%A9", "~", "A", ""],
                [".well-known", "..", ".", "%2f", "%41", "%7E", "%"])
        }
        text += pick(["/", "/?q=1", "/a"], ["", "?a=%41&b", "#f", "?x#y", "?u=/../"])
        guard let url = URL(string: text) else { return nil }
        var request = URLRequest(url: url)
        if isRare() { request.httpMethod = ["HEAD", "POST", "get", "PUT"].randomElement(using: &random) }
        if isRare() { request.httpBody = [Data(), Data("a".utf8)].randomElement(using: &random) }
        if isRare() { request.httpBodyStream = InputStream(data: Data("a".utf8)) }
        for name in ["Accept", "host", "Host", "AUTHORIZATION", "Authorization", "Cookie", "Hose"] where isRare() {
            let value = ["example.com", "other.org", "a", ""].randomElement(using: &random)!
            request.setValue(value, forHTTPHeaderField: name)
        }
        if isRare() { request.cacheOptions = DiskURLCache.Options(tags: ["a"]) }
        return request
    }

    @Test mutating func aPlainKeyIsTheKeyThatTheGeneralWayMakes() {
        var plainCount = 0
        for _ in 0..<TestLength.pick(plain: 3_000, long: 1_000_000) {
            guard let request = request() else { continue }
            let values = DiskURLCache.Request(request)
            let general = DiskURLCache.KeyPolicy.standard.generalDecision(for: values, RequestKey.Form()).key
            let quick = RequestKey(plain: request, HeaderFields(request))
            let quickOfValues = RequestKey(plain: values)
            // A request with options is not plain: they may name a policy.
            #expect(quick == (values.options == nil ? quickOfValues : nil), "\(request)")
            guard let quickOfValues else { continue }
            plainCount += 1
            #expect(quickOfValues == general && quickOfValues.uri == general?.uri, "\(request)")
            #expect(quickOfValues.isForHead == general?.isForHead && quickOfValues.diskKey == general?.diskKey)
        }
        #expect(plainCount > 600, "the requests are plain often enough to show something")
    }

    /// A cache takes the short way only if no rule, policy or form can add to the key.
    @Test(arguments: ["rule", "policy", "shared", "none"]) mutating func aCacheTakesIt(setting: String) throws {
        var configuration = DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0)
        switch setting {
        case "rule": configuration.rules = [DiskURLCache.Rule(for: .path("/a"), storage: .never)]
        case "policy": configuration.keyPolicy = .standard.includingFields("accept")
        case "shared": configuration.isShared = true
        default: break
        }
        let cache = DiskURLCache(configuration: configuration)
        for _ in 0..<500 {
            guard let request = request() else { continue }
            let decision = cache.resolve(request).decision
            #expect(cache.key(for: request) == decision.key, "\(request)")
        }
    }
}
