import AsyncHTTPClient
import CachingHTTPClient
import DiskURLCache
import Foundation
import LoopbackOrigin
import NIOCore
import Testing

@Suite(.timeLimit(.minutes(2))) struct ExplanationTests {
    /// Of a client that decodes, one that does not, and a request that names codings itself.
    @Test(arguments: [(true, false), (false, false), (true, true)])
    func aClientFindsWhatItStored(decodes: Bool, hasOwnCoding: Bool) async throws {
        let origin = try await Origin { _, answer in
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], "body")
        }
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("why-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }
        var configuration = HTTPClient.Configuration()
        if decodes { configuration.decompression = .enabled(limit: .ratio(25)) }
        let client = CachingHTTPClient(
            storage: .init(memoryCapacity: 0, diskCapacity: 1 << 20, directory: directory), configuration: configuration
        )
        var request = HTTPClientRequest(url: origin.url("/a"))
        if hasOwnCoding { request.headers = ["Accept-Encoding": "br"] }
        let before = try await client.explanation(for: request)
        #expect(before.description.contains("Loads from the network"))
        _ = try await client.execute(request, timeout: .seconds(60)).body.collect(upTo: 100)
        client.cache.flush()
        let after = try await client.explanation(for: request)
        #expect(after.description.contains("from disk") && after.description.contains("it is fresh"))
        let never = try await client.explanation(for: request, cacheOptions: DiskURLCache.Options(storage: .never))
        #expect(never.description.contains("storage: .never"))
        #expect(origin.requests.count == 1)
        try await client.shutdown()
    }

    /// The variants above, whose keys `cache.removeCachedResponse(for:)` does not know.
    @Test(arguments: [(true, false), (false, false), (true, true)])
    func aClientRemovesWhatItStored(decodes: Bool, hasOwnCoding: Bool) async throws {
        let origin = try await Origin { _, answer in
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], "body")
        }
        var configuration = HTTPClient.Configuration()
        if decodes { configuration.decompression = .enabled(limit: .ratio(25)) }
        let client = CachingHTTPClient(
            storage: .init(memoryCapacity: 1 << 20, diskCapacity: 0), configuration: configuration)
        var request = HTTPClientRequest(url: origin.url("/a"))
        if hasOwnCoding { request.headers = ["Accept-Encoding": "br"] }
        for count in 1...2 {
            for _ in 0..<2 {
                _ = try await client.execute(request, timeout: .seconds(60)).body.collect(upTo: 100)
                #expect(origin.requests.count == count)
            }
            try await client.removeCachedResponse(for: request)
        }
        await #expect(throws: HTTPClientError.invalidURL) {
            try await client.removeCachedResponse(for: HTTPClientRequest(url: "http+unix://%2Ftmp%2Fa/"))
        }
        try await client.shutdown()
    }

    /// The options of a load may name a key policy, and so its key.
    @Test func aResponseIsRemovedByTheOptionsOfItsLoad() async throws {
        let origin = try await Origin { _, answer in
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], "body")
        }
        var storage = DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0)
        storage.keyPolicies = ["tenant": .standard.includingFields("X-Tenant")]
        let client = CachingHTTPClient(storage: storage)
        var request = HTTPClientRequest(url: origin.url("/a"))
        request.headers = ["X-Tenant": "a"]
        var options = DiskURLCache.Options()
        options.keyPolicy = "tenant"
        for count in 1...2 {
            for _ in 0..<2 {
                _ = try await client.execute(request, timeout: .seconds(60), cacheOptions: options).body
                    .collect(upTo: 100)
                #expect(origin.requests.count == count)
            }
            try await client.removeCachedResponse(for: request, cacheOptions: options)
        }
        try await client.shutdown()
    }

    @Test func aBodyThatIsPartOfTheKeyCounts() async throws {
        let origin = try await Origin { _, answer in
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], "body")
        }
        var storage = DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0)
        storage.keyPolicy = .standard.includingBody(ofMethods: "POST")
        let client = CachingHTTPClient(storage: storage, methodsKeyedByBody: [.POST])
        func request(_ body: String) -> HTTPClientRequest {
            var request = HTTPClientRequest(url: origin.url("/a"))
            request.method = .POST
            request.body = .bytes(ByteBuffer(string: body))
            return request
        }
        _ = try await client.execute(request("1"), timeout: .seconds(60)).body.collect(upTo: 100)
        let (same, other) = (
            try await client.explanation(for: request("1")), try await client.explanation(for: request("2"))
        )
        #expect(same.description.contains("from memory") && same.description.contains("it is fresh"))
        #expect(other.description.contains("Loads from the network"))
        try await client.shutdown()
    }
}
