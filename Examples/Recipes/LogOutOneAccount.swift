import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One call removes all responses to the requests with one Authorization; a tag removes them after the token has
/// changed.
@Sendable func logOutOneAccount(origin: Origin, directory: URL) async throws {
    func request(as account: String) -> URLRequest {
        var request = URLRequest(url: origin.url("/inbox"))
        request.setValue("Bearer token-of-\(account)", forHTTPHeaderField: "Authorization")
        request.cacheOptions = .init(tags: ["account:\(account)"])
        return request
    }
    let cache = DiskURLCache(memoryCapacity: 16 << 20, diskCapacity: 200 << 20, directory: directory)
    let session = cache.makeSession()
    for account in ["ada", "bob", "eve"] { _ = try await session.data(for: request(as: account)) }

    await cache.perform { $0.removeCachedResponses(authorization: "Bearer token-of-ada") }
    await cache.perform { $0.removeCachedResponses(tag: "account:bob") }

    expect(!cache.contains(request(as: "ada")), "Ada's inbox is removed by her token")
    expect(!cache.contains(request(as: "bob")), "Bob's inbox is removed by his tag")
    expect(cache.contains(request(as: "eve")), "Eve's inbox stays")
}
