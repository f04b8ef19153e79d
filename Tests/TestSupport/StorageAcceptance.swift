import DiskURLCache
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Checks what every disk layer must do, through the public API only. Copy this file to check your own
/// `DiskURLCache.EntryStorage`.
///
/// `make` opens a cache whose only layer is the storage under test. If `isPersistent`, calling it again with the same
/// label opens the same storage again.
public struct StorageAcceptance {
    public var isPersistent: Bool
    /// A number of entries of 20 KB that is more than the storage can hold.
    public var fillingCount: Int
    public var make: () throws -> DiskURLCache

    public init(isPersistent: Bool, fillingCount: Int = 100, make: @escaping () throws -> DiskURLCache) {
        self.isPersistent = isPersistent
        self.fillingCount = fillingCount
        self.make = make
    }

    private func request(_ path: String, language: String? = nil) -> URLRequest {
        var request = URLRequest(url: URL(string: "https://example.com\(path)")!)
        request.setValue(language, forHTTPHeaderField: "Accept-Language")
        return request
    }

    private func response(_ request: URLRequest, _ body: String, fields: [String: String] = [:]) -> CachedURLResponse {
        CachedURLResponse(
            response: HTTPURLResponse(
                url: request.url!, statusCode: 200, httpVersion: nil, headerFields: fields)!, data: Data(body.utf8))
    }

    private func body(_ cache: DiskURLCache, _ request: URLRequest) -> String? {
        cache.cachedResponse(for: request).map { String(decoding: $0.data, as: UTF8.self) }
    }

    public func run() throws {
        // Each step opens the storage again. Anything that a step had not yet written by then would interfere with the
        // next step.
        let steps = [
            storesReplacesAndRemoves, keepsVariantsApart, removesManyAtOnce, staysWithinItsCapacity,
            keepsWholeResponses, removesBeforeItTells,
        ]
        for step in steps {
            let cache = try make()
            try step(cache)
            cache.flush()
        }
        if isPersistent { try survivesReopening() }
    }

    private func storesReplacesAndRemoves(_ cache: DiskURLCache) throws {
        cache.removeAllCachedResponses()
        #expect(body(cache, request("/a")) == nil)
        cache.storeCachedResponse(response(request("/a"), "one"), for: request("/a"))
        cache.storeCachedResponse(response(request("/b"), "b"), for: request("/b"))
        #expect(body(cache, request("/a")) == "one")
        cache.storeCachedResponse(response(request("/a"), "two"), for: request("/a"))
        #expect(body(cache, request("/a")) == "two")
        cache.removeCachedResponse(for: request("/a"))
        #expect(body(cache, request("/a")) == nil)
        #expect(!cache.contains(request("/a")))
        #expect(body(cache, request("/b")) == "b")
        cache.flush()
        #expect(body(cache, request("/b")) == "b")
    }

    private func keepsVariantsApart(_ cache: DiskURLCache) throws {
        cache.removeAllCachedResponses()
        for language in ["de", "en", "fr"] {
            let request = request("/v", language: language)
            cache.storeCachedResponse(response(request, language, fields: ["Vary": "Accept-Language"]), for: request)
        }
        cache.storeCachedResponse(
            response(request("/v"), "de 2", fields: ["Vary": "Accept-Language"]), for: request("/v", language: "de"))
        #expect(body(cache, request("/v", language: "de")) == "de 2")
        #expect(body(cache, request("/v", language: "fr")) == "fr")
        #expect(body(cache, request("/v", language: "it")) == nil)
    }

    private func removesManyAtOnce(_ cache: DiskURLCache) throws {
        cache.removeAllCachedResponses()
        for path in ["/x/1", "/x/2", "/y"] {
            var request = request(path)
            request.cacheOptions = .init(tags: path == "/y" ? ["other"] : ["group"])
            cache.storeCachedResponse(response(request, path), for: request)
        }
        cache.removeCachedResponses(tag: "group")
        #expect(!cache.contains(request("/x/1")))
        #expect(cache.contains(request("/y")))
        cache.removeCachedResponses(olderThan: .distantPast)
        #expect(cache.contains(request("/y")))
        cache.removeCachedResponses(since: .distantPast)
        #expect(!cache.contains(request("/y")))
        cache.storeCachedResponse(response(request("/z"), "z"), for: request("/z"))
        cache.removeCachedResponses(host: "example.com")
        #expect(!cache.contains(request("/z")))
        cache.storeCachedResponse(response(request("/z"), "z"), for: request("/z"))
        cache.removeAllCachedResponses()
        #expect(!cache.contains(request("/z")))
    }

    /// When a removal by tag, URL, host, age or prefix returns, the matching entries are gone and all others are there,
    /// also if entries were replaced before.
    private func removesBeforeItTells(_ cache: DiskURLCache) throws {
        cache.removeAllCachedResponses()
        let removals: [(DiskURLCache) -> Void] = [
            { $0.removeCachedResponses(tag: "group") },
            { $0.removeCachedResponses(urlPrefix: "https://example.com/x/") },
            { $0.removeCachedResponse(for: self.request("/x/1", language: "en")) },
        ]
        for remove in removals {
            for round in 0..<2 {
                for path in ["/x/1", "/y"] {
                    for language in ["de", "en"] {
                        var request = request(path, language: language)
                        request.cacheOptions = .init(tags: path == "/y" ? ["other"] : ["group"])
                        cache.storeCachedResponse(
                            response(request, "\(language) \(round)", fields: ["Vary": "Accept-Language"]), for: request
                        )
                    }
                }
                if round == 0 { cache.flush() }
            }
            remove(cache)
            #expect(!cache.contains(request("/x/1")))
            #expect(body(cache, request("/y", language: "de")) == "de 1")
            cache.flush()
            #expect(!cache.contains(request("/x/1")))
            #expect(body(cache, request("/y", language: "en")) == "en 1")
        }
    }

    private func staysWithinItsCapacity(_ cache: DiskURLCache) throws {
        cache.removeAllCachedResponses()
        let text = String(repeating: "x", count: 20_000)
        for index in 0..<fillingCount {
            cache.storeCachedResponse(response(request("/\(index)"), text), for: request("/\(index)"))
        }
        cache.flush()
        let capacity = max(cache.memoryCapacity, cache.diskCapacity)
        #expect(capacity < fillingCount * text.utf8.count, "the test means to fill the storage")
        #expect(cache.currentMemoryUsage + cache.currentDiskUsage <= capacity)
        #expect(body(cache, request("/\(fillingCount - 1)"))?.utf8.count == 20_000, "what was stored last is kept")
    }

    private func keepsWholeResponses(_ cache: DiskURLCache) throws {
        cache.removeAllCachedResponses()
        let cached = CachedURLResponse(
            response: HTTPURLResponse(
                url: URL(string: "https://example.com/final")!, statusCode: 404, httpVersion: nil,
                headerFields: ["ETag": "\"x\"", "Content-Type": "text/plain"])!,
            data: Data(), userInfo: ["n": 7], storagePolicy: .allowed)
        cache.storeCachedResponse(cached, for: request("/a"))
        let found = try #require(cache.cachedResponse(for: request("/a")))
        let response = try #require(found.response as? HTTPURLResponse)
        #expect(response.statusCode == 404)
        #expect(response.url?.path == "/final")
        #expect(response.value(forHTTPHeaderField: "etag") == "\"x\"")
        #expect(found.data.isEmpty)
        #expect(found.userInfo?["n"] as? Int == 7)
    }

    private func survivesReopening() throws {
        let cache = try make()
        cache.removeAllCachedResponses()
        cache.storeCachedResponse(response(request("/a"), "kept"), for: request("/a"))
        cache.flush()
        let reopened = try make()
        #expect(body(reopened, request("/a")) == "kept")
    }
}
