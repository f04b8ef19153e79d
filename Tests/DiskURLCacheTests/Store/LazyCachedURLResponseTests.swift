import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite struct LazyCachedURLResponseTests {
    private func entry(isMemoryOnly: Bool = false, keepsURL: Bool = true) -> (StoredEntry, CachedURLResponse) {
        let url = Responses.url("/lazy")
        let eager = Responses.cached(
            url, "the body", fields: ["Cache-Control": "max-age=60", "Content-Type": "text/plain; charset=utf-8"],
            userInfo: ["a": 1], policy: isMemoryOnly ? .allowedInMemoryOnly : .allowed)
        let now = Date()
        let metadata = EntryMetadata(
            sequence: 1, url: keepsURL ? url.absoluteString : nil,
            response: EntryMetadata.Response(
                eager.response, fields: HeaderFields(eager.response as! HTTPURLResponse), method: "GET", vary: .none,
                time: now),
            storedAt: now, placement: isMemoryOnly ? .memoryOnly : .memoryAndDisk, userInfo: ["a": .integer(1)],
            tags: [], isPinned: false)
        return (StoredEntry(metadata: metadata, body: eager.data), eager)
    }

    @Test(arguments: [false, true]) func isEqualToOneBuiltAtOnce(isMemoryOnly: Bool) throws {
        let (entry, eager) = entry(isMemoryOnly: isMemoryOnly)
        let lazy = entry.makeCachedURLResponse(requestedURL: Responses.url("/other"))
        let response = try #require(lazy.response as? HTTPURLResponse)
        let expected = try #require(eager.response as? HTTPURLResponse)
        #expect(response.url == expected.url)
        #expect(response.statusCode == expected.statusCode)
        #expect(response.allHeaderFields as? [String: String] == expected.allHeaderFields as? [String: String])
        #expect(response.mimeType == "text/plain")
        #expect(response.textEncodingName == "utf-8")
        #expect(lazy.data == eager.data)
        #expect(lazy.userInfo?["a"] as? Int == 1)
        #expect(lazy.storagePolicy == eager.storagePolicy)
        #expect((lazy.copy() as? CachedURLResponse)?.response === response)
    }

    @Test func theSameResponseIsGivenEachTime() {
        let lazy = entry().0.makeCachedURLResponse(requestedURL: Responses.url("/other"))
        #expect(lazy.response === lazy.response)
        #expect(lazy.isEqual(lazy))
    }

    @Test func theRequestedURLStandsInForOneThatIsNotKept() {
        let lazy = entry(keepsURL: false).0.makeCachedURLResponse(requestedURL: Responses.url("/asked"))
        #expect(lazy.response.url == Responses.url("/asked"))
    }

    @Test func threadsGetOneResponse() {
        let lazy = entry().0.makeCachedURLResponse(requestedURL: Responses.url("/other"))
        let seen = Mutex<Set<ObjectIdentifier>>([])
        DispatchQueue.concurrentPerform(iterations: 64) { _ in
            let identity = ObjectIdentifier(lazy.response)
            seen.withLock { _ = $0.insert(identity) }
        }
        #expect(seen.withLock { $0.count } == 1)
    }
}
