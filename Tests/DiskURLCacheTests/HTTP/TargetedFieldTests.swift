import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

/// `CDN-Cache-Control` and its like in a shared cache (RFC 9213).
@Suite struct TargetedFieldTests {
    private static func directives(_ value: String) -> [CacheControl.Directive]? {
        TargetedField(in: ["CDN-Cache-Control": value], listed: ["CDN-Cache-Control"])?.control.directives
    }

    private static func cache(_ names: [String] = ["Mine-Cache-Control", "CDN-Cache-Control"]) -> PureCache {
        var cache = PureCache()
        cache.options.isShared = true
        cache.options.targetedFields = names
        return cache
    }

    /// Whether a second request 10 seconds later is answered from the store.
    private static func isReused(
        _ fields: HeaderFields, _ names: [String] = ["Mine-Cache-Control", "CDN-Cache-Control"]
    ) -> Bool {
        var cache = cache(names)
        _ = cache.load(answer: fields)
        cache.now += 10
        return cache.load().source == .stored
    }

    // MARK: The grammar (RFC 9651 §4.2.2)

    @Test(arguments: [
        ("max-age=60", ["max-age=60"]), ("  max-age=60 \t,\t private", ["max-age=60", "private"]),
        ("max-age=1, max-age=60", ["max-age=60"]), ("no-cache=\"a, \\\"b\\\\\", x", ["no-cache=a, \"b\\", "x"]),
        ("a=b:c/d;p=1; q;*r=?0;s=1.5", ["a=b:c/d"]), ("a=*b, *c.d-e_f", ["a=*b", "*c.d-e_f"]),
        ("private=?1", ["private"]), ("max-age=999999999999999", ["max-age=999999999999999"]),
    ])
    func dictionariesAreRead(value: String, expected: [String]) {
        let seen = Self.directives(value)?.map { directive in
            if case .value(let text) = directive.argument { "\(directive.name)=\(text)" } else { directive.name }
        }
        #expect(seen == expected)
    }

    /// What does not parse is as if it were not there. No directive has a list, bytes, a decimal, or a false value:
    /// such fields count as wrong, too.
    @Test(arguments: [
        "", " ", ",", "max-age=60,", "max-age=60,,private", "max-age =60", "max-age= 60", "max-age=\"60\"", "max-age",
        "max-age=a",
        "max-age=-1", "max-age=1.5", "max-age=9999999999999999", "MAX-AGE=60", "private max-age=60", "&",
        "max-age=60, &&&",
        "a=\"", "a=\"b\\c\"", "a=\"\u{e9}\"", "a=(b c)", "a=:YQ==:", "a=@1", "a=%\"b\"", "a=?2", "private=?0", "a;=1",
        "a;B", "a=b;c=",
        "=1",
    ])
    func whatIsNoDictionaryIsIgnored(value: String) {
        #expect(Self.directives(value) == nil)
        #expect(Self.isReused(["CDN-Cache-Control": value, "Cache-Control": "max-age=60"]))
        #expect(!Self.isReused(["CDN-Cache-Control": value, "Cache-Control": "no-store"]))
    }

    // MARK: What governs (RFC 9213 §2.2)

    @Test func theFirstListedFieldWithAValueGoverns() {
        let (long, short) = ("max-age=60", "max-age=5")
        #expect(Self.isReused(["CDN-Cache-Control": long, "Cache-Control": "no-store, max-age=0"]))
        #expect(!Self.isReused(["CDN-Cache-Control": short, "Cache-Control": long]))
        #expect(Self.isReused(["CDN-Cache-Control": short, "Mine-Cache-Control": long]))
        #expect(!Self.isReused(["CDN-Cache-Control": long, "Mine-Cache-Control": short]))
        #expect(Self.isReused(["CDN-Cache-Control": long, "Mine-Cache-Control": "&"]))
        // Others are not looked at.
        #expect(!Self.isReused(["CDN-Cache-Control": long], ["Mine-Cache-Control"]))
        #expect(!Self.isReused(["CDN-Cache-Control": long], []))
    }

    @Test func expiresAndPragmaDoNotCountBesideIt() {
        let (past, future) = ("Mon, 01 Jan 2018 00:00:00 GMT", "Mon, 01 Jan 2100 00:00:00 GMT")
        #expect(Self.isReused(["CDN-Cache-Control": "max-age=60", "Expires": past, "Pragma": "no-cache"]))
        #expect(!Self.isReused(["CDN-Cache-Control": "public", "Expires": future]))
        #expect(Self.isReused(["CDN-Cache-Control": "&", "Expires": future]))
    }

    @Test(arguments: ["no-store", "private", "no-cache", "private=\"X-User\"", "no-cache=\"X-User\""])
    func whatItForbidsIsForbidden(directive: String) {
        let fields: HeaderFields = [
            "CDN-Cache-Control": "\(directive), max-age=60", "Cache-Control": "max-age=60", "ETag": "\"1\"",
        ]
        #expect(!Self.isReused(fields))
        // A 304 that begins to say so takes what is stored away.
        var cache = Self.cache()
        _ = cache.load(answer: ["CDN-Cache-Control": "max-age=1", "ETag": "\"1\""])
        cache.now += 10
        #expect(cache.load(status: 304, answer: fields).source == .validated)
        #expect(cache.load(answer: fields).source != .stored)
    }

    @Test func staleUseIsAsItSays() {
        var cache = Self.cache()
        let fields: HeaderFields = [
            "CDN-Cache-Control": "max-age=1, stale-if-error=60", "Cache-Control": "max-age=1, must-revalidate",
        ]
        _ = cache.load(answer: fields)
        cache.now += 10
        #expect(cache.load(status: 503, answer: [:]).source == .staleOnError)
        var strict = Self.cache()
        _ = strict.load(answer: [
            "CDN-Cache-Control": "max-age=1, must-revalidate", "Cache-Control": "max-age=1, stale-if-error=60",
        ])
        strict.now += 10
        #expect(strict.load(status: 503, answer: [:]).source == .origin)
    }

    /// Caches behind this one have to see what the origin said to them.
    @Test func fieldsAreDeliveredAsTheyCame() {
        var cache = Self.cache()
        let fields: HeaderFields = ["CDN-Cache-Control": "max-age=60", "Cache-Control": "max-age=1", "Expires": "0"]
        _ = cache.load(answer: fields)
        let answer = cache.load()
        #expect(answer.source == .stored)
        for name in ["CDN-Cache-Control", "Cache-Control", "Expires"] { #expect(answer.fields[name] == fields[name]) }
    }

    /// By the setting, in a shared cache only.
    @Test(arguments: [true, false])
    func aSharedCacheTakesTheListOfTheApp(isShared: Bool) async throws {
        var settings = DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0)
        settings.isShared = isShared
        settings.targetedFields = ["CDN-Cache-Control"]
        let cache = DiskURLCache(configuration: settings)
        let network = MemoryTransport { _, exchange in
            exchange.head(200, ["CDN-Cache-Control": "max-age=86400", "Cache-Control": "no-store"])
            exchange.piece("body")
            exchange.end()
        }
        for _ in 0..<2 { _ = try await LoadReader(Responses.request("/a"), from: cache, over: network).answer() }
        #expect(network.requests.count == (isShared ? 1 : 2))
        guard isShared else { return }
        #expect(
            "\(cache.explanation(for: Responses.request("/a")))".contains(
                "from CDN-Cache-Control: max-age=86400"))
    }

    /// Whether a response is worth a file follows from the field that governs.
    @Test func theFieldDecidesAboutTheDisk() async throws {
        let scratch = try ScratchDirectory()
        var settings = DiskURLCache.Configuration(
            memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: scratch.url)
        settings.isShared = true
        settings.targetedFields = ["CDN-Cache-Control"]
        settings.minimumDiskLifetime = 300
        let cache = DiskURLCache(configuration: settings)
        for (path, own, others) in [("/long", 86_400, 1), ("/short", 1, 86_400)] {
            let network = MemoryTransport { _, exchange in
                exchange.head(200, ["CDN-Cache-Control": "max-age=\(own)", "Cache-Control": "max-age=\(others)"])
                exchange.piece("body")
                exchange.end()
            }
            _ = try await LoadReader(Responses.request(path), from: cache, over: network).answer()
        }
        cache.removeAllCachedResponses(from: .memory)
        #expect(cache.contains(Responses.request("/long")) && !cache.contains(Responses.request("/short")))
    }
}
