import DiskURLCache
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Responses that the app stores itself, and those whose head the app changes before they are stored: nothing of them
/// is stored that would not be stored of an answer.
@Suite struct AppResponsesTests {
    private let scratch: ScratchDirectory
    private let clock = ManualClock()
    private let request = Responses.request("/a")

    init() throws { scratch = try ScratchDirectory("app-responses") }

    private func makeCache(_ configure: (inout DiskURLCache.Configuration) -> Void = { _ in }) -> DiskURLCache {
        DiskURLCache(in: scratch, clock: clock, configure)
    }

    /// The bytes of all files of the cache.
    private func stored() throws -> String {
        let files = FileManager.default
        let names = try #require(files.enumerator(atPath: scratch.url.path))
        let paths = names.compactMap { $0 as? String }.map { scratch.url.path + "/" + $0 }
        return paths.compactMap { files.contents(atPath: $0) }.map { String(decoding: $0, as: UTF8.self) }.joined()
    }

    private func load(_ cache: DiskURLCache, _ request: URLRequest) async throws -> HTTPURLResponse {
        let network = ClosureTransport { _, exchange in
            exchange.head(200, ["Cache-Control": "max-age=60", "X-Sent": "by the origin"])
            await exchange.piece("from the network")
        }
        return try await cache.answer(to: request, through: network).response
    }

    private static let withheld = [
        "Cache-Control": "max-age=60, no-cache=\"X-Withheld\"", "Set-Cookie": "session=SECRET", "Connection": "X-Hop",
        "Proxy-Authorization": "SECRET", "X-Hop": "SECRET", "X-Withheld": "SECRET", "X-Kept": "kept",
    ]

    @Test func whatIsNeverStoredIsNotStoredForTheApp() async throws {
        let cache = makeCache()
        let cached = Responses.cached(Responses.url("/a"), fields: Self.withheld)
        cache.storeCachedResponse(cached, for: request)
        cache.flush()
        let stored = try stored()
        #expect(stored.contains("X-Kept") && !stored.contains("SECRET"))
        let answer = try await load(cache, request)
        #expect(
            answer.value(forHTTPHeaderField: "X-Kept") == "kept"
                && answer.value(forHTTPHeaderField: "Set-Cookie") == nil
                && answer.value(forHTTPHeaderField: "X-Hop") == nil)
        // The object is what the app gave, as long as memory has it.
        #expect(cache.cachedResponse(for: request) === cached)
    }

    @Test func whatIsNeverStoredIsNotStoredOfAChangedHead() async throws {
        let cache = makeCache { settings in
            settings.willCacheResponse = { response, request in
                CachedURLResponse(
                    response: Responses.http(Responses.url("/a"), fields: Self.withheld), data: response.data)
            }
        }
        _ = try await load(cache, request)
        cache.flush()
        let stored = try stored()
        #expect(stored.contains("X-Kept") && !stored.contains("SECRET"))
        #expect(try await load(cache, request).value(forHTTPHeaderField: "Set-Cookie") == nil)
    }

    /// A head that the app changes is judged as one that the origin sends.
    @Test func aChangedHeadDecides() async throws {
        let changed = Guarded<[String: String]>([:])
        let cache = makeCache { settings in
            settings.willCacheResponse = { response, request in
                CachedURLResponse(
                    response: Responses.http(Responses.url("/a"), fields: changed.withLock { $0 }), data: response.data)
            }
        }
        for value in ["Cache-Control": "no-store", "Vary": "*"] {
            changed.withLock { $0 = [value.key: value.value, "X-Secret": "SECRET"] }
            _ = try await load(cache, request)
            cache.flush()
            #expect(!cache.contains(request))
            #expect(try !stored().contains("SECRET"))
        }
        changed.withLock { $0 = ["Cache-Control": "max-age=60", "Vary": "X-Kind"] }
        _ = try await load(cache, Responses.request("/a", fields: ["X-Kind": "1"]))
        let found = ["1", "2"].map { cache.cachedResponse(for: Responses.request("/a", fields: ["X-Kind": $0])) != nil }
        #expect(found == [true, false])
    }

    /// What only the request says is not about what is stored.
    @Test func aRequestThatForbidsStoringRemovesNothing() {
        let cache = makeCache()
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "first"), for: request)
        let forbids = Responses.request("/a", fields: ["Cache-Control": "no-store"])
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "second"), for: forbids)
        #expect(cache.cachedResponse(for: request)?.data == Data("first".utf8))
    }

    /// No lookup returns a part, so it must not take the place of the whole.
    @Test func aPartIsNotStoredForTheApp() {
        let cache = makeCache()
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "whole"), for: request)
        let part = Responses.cached(
            Responses.url("/a"), "wh", status: 206,
            fields: ["Cache-Control": "max-age=60", "Content-Range": "bytes 0-1/5"])
        cache.storeCachedResponse(part, for: request)
        #expect(cache.cachedResponse(for: request)?.data == Data("whole".utf8))
    }
}
