import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A POST is cached by URL, body and the field that has its signature.
@Sendable func signedPost(origin: Origin, directory: URL) async throws {
    var settings = DiskURLCache.Configuration(directory: directory)
    settings.keyPolicy = .standard.includingFields("sign").includingBody(ofMethods: "POST")
    settings.rules = [
        .init(for: .url(origin.url("/search").absoluteString), lifetime: .whenMissing(.minutes(5)))
    ]
    settings.willCacheResponse = { response, _ in
        let answer = try? JSONSerialization.jsonObject(with: response.data) as? [String: Any]
        return answer?["returnCode"] as? Int == 0 ? response : nil
    }
    let cache = DiskURLCache(configuration: settings)
    let session = cache.makeSession()

    for text in ["tea", "tea", "coffee"] {
        var request = URLRequest(url: origin.url("/search"))
        request.httpMethod = "POST"
        request.httpBody = Data(text.utf8)
        request.setValue("signature of \(text)", forHTTPHeaderField: "sign")
        _ = try await session.data(for: request)
    }

    let requests = await origin.log.count
    expect(requests == 2, "\(requests) requests: one for each body was expected")
}
