import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Every request of an account is tagged by the rule that sees its Authorization field; one call removes what has the tag.
@Sendable func logOutOneAccount(origin: Origin, directory: URL) async throws {
    func request(as account: String) -> URLRequest {
        var request = URLRequest(url: origin.url("/inbox"))
        request.setValue("Bearer token-of-\(account)", forHTTPHeaderField: "Authorization")
        request.cacheTreatment = .init(tags: ["account:\(account)"])
        return request
    }
    let cache = DiskURLCache(memoryCapacity: 16 << 20, diskCapacity: 200 << 20, directory: directory)
    let session = cache.makeSession()
    for account in ["ada", "bob"] { _ = try await session.data(for: request(as: account)) }

    await cache.async.removeCachedResponses(tag: "account:ada")

    expect(!cache.contains(request(as: "ada")), "Ada's inbox is removed")
    expect(cache.contains(request(as: "bob")), "Bob's inbox stays")
}
