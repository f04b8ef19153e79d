import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What other caches say of an answer (RFC 9211, RFC 9209), in sentences.
@Suite struct CachesOnTheWayTests {
    private static func texts(_ fields: HeaderFields) -> [String] { CachesOnTheWay(fields).statements.map(\.text) }

    @Test(arguments: [
        ("ExampleCache; hit", ["The cache \"ExampleCache\" answered from its store."]),
        ("CDN; hit; ttl=376", ["The cache \"CDN\" answered from its store; fresh for 376 s more."]),
        ("CDN; hit; ttl=-412", ["The cache \"CDN\" answered from its store; stale for 412 s."]),
        (
            "\"A B\"; fwd=uri-miss; collapsed; stored",
            [
                "The cache \"A B\" asked further on, since it had nothing for the URL, together with another request; it stored the answer."
            ]
        ),
        (
            "CDN; fwd=stale; fwd-status=304; detail=\"x y\"",
            ["The cache \"CDN\" asked further on, since its stored answer was stale, and got a 304 (x y)."]
        ),
        ("CDN; fwd=new-reason", ["The cache \"CDN\" asked further on, because of new-reason."]),
        ("CDN", ["The cache \"CDN\" handled the request, and does not say how."]),
        (
            "Origin; hit, Edge; fwd=miss",
            [
                "The cache \"Origin\" answered from its store.",
                "The cache \"Edge\" asked further on, since it had nothing that fits.",
            ]
        ),
        ("CDN; hit=?0", ["The cache \"CDN\" handled the request, and does not say how."]),
        ("CDN; HIT", []), ("hit from cloudfront", []), ("1; hit", []), ("(a b)", []),
    ])
    func cacheStatusIsRead(value: String, expected: [String]) {
        #expect(Self.texts(["Cache-Status": value]) == expected)
    }

    @Test func proxiesOlderCachesAndAgeAreRead() {
        #expect(
            Self.texts(["Proxy-Status": "r.example; error=connection_timeout; details=\"10 s\", b; next-hop=x"])
                == ["The proxy \"r.example\" made this answer: connection_timeout (10 s)."])
        #expect(
            Self.texts(["X-Cache": "HIT", "Age": "41"]) == [
                "X-Cache: HIT. No standard defines what that says.",
                "It was 41 s old when it arrived: a cache on the way had it.",
            ])
        #expect(Self.texts(["X-Cache": "HIT", "Cache-Status": "c; hit"]).count == 1)
        for fields in [[:], ["Age": "0"], ["Age": "-1"], ["Age": "x"]] as [HeaderFields] {
            #expect(Self.texts(fields) == [])
        }
    }

    @Test func whySaysItOfAStoredAndOfAReceivedResponse() {
        let cache = DiskURLCache(configuration: .init(memoryCapacity: 1 << 20, diskCapacity: 0))
        let response = Responses.http(
            Responses.url("/a"), fields: ["Cache-Control": "max-age=600", "Cache-Status": "CDN; hit", "Age": "41"])
        let request = Responses.request("/a")
        for received in [response, nil] {
            let words = cache.explanation(for: request, response: received).description
            #expect(words.contains("Caches on the way\n  The cache \"CDN\" answered from its store"))
            #expect(words.contains("41 s old"))
            cache.storeCachedResponse(CachedURLResponse(response: response, data: Data()), for: request)
        }
        var post = request
        post.httpMethod = "POST"
        #expect(cache.explanation(for: post, response: response).description.contains("\"CDN\" answered"))
    }
}
