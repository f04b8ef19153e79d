import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Decisions that only show over a real session: POST by a key policy, and a refresh behind a partial request.
@Suite(.loadsOnLinux, .fewAtATime) struct PostRecipeTests {
    struct Loader {
        let cache: DiskURLCache
        let session: URLSession
        let clock = ManualClock()

        init(keyPolicy: DiskURLCache.KeyPolicy = .standard) {
            var settings = DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0)
            settings.clock = clock.wallClock
            settings.keyPolicy = keyPolicy
            cache = DiskURLCache(configuration: settings)
            session = cache.makeSession(configuration: .default.patient)
        }

        func load(_ url: URL, method: String = "GET", body: String? = nil, fields: HeaderFields = [:]) async throws
            -> (String, Int)
        {
            var request = URLRequest(url: url)
            request.httpMethod = method
            request.httpBody = body.map { Data($0.utf8) }
            for field in fields.fields { request.setValue(field.value, forHTTPHeaderField: field.name) }
            let (data, response) = try await session.data(for: request)
            return (String(decoding: data, as: UTF8.self), (response as? HTTPURLResponse)?.statusCode ?? 0)
        }
    }

    @Test func postThatTheKeyPolicyNamesIsCachedByItsBody() async throws {
        let server = try OriginServer { request in
            .ok(String(decoding: request.body, as: UTF8.self), ["Cache-Control": "max-age=60"])
        }
        let loader = Loader(keyPolicy: DiskURLCache.KeyPolicy.standard.includingBody(ofMethods: "POST"))
        for body in ["one", "two", "one", "two"] {
            #expect(try await loader.load(server.url("/"), method: "POST", body: body).0 == body)
        }
        #expect(server.requests.count == 2)
        loader.session.finishTasksAndInvalidate()
    }

    @Test func refreshBehindAPartialRequestFetchesTheWhole() async throws {
        let server = try OriginServer { request in
            .ok(
                "body \(request.number) \(request.fields["Range"] ?? "-")",
                ["Cache-Control": "max-age=1, stale-while-revalidate=60"])
        }
        let loader = Loader()
        _ = try await loader.load(server.url("/"))
        loader.clock.advance(by: 5)
        let events = loader.cache.events()
        let part = try await loader.load(server.url("/"), fields: ["Range": "bytes=0-3", "If-None-Match": "\"x\""])
        #expect(part == ("body", 206))
        for await case .stored in events { break }
        #expect(try await loader.load(server.url("/")).0 == "body 2 -")
        #expect(server.requests.count == 2)
        #expect(server.requests.last?.fields["If-None-Match"] == nil)
        loader.session.finishTasksAndInvalidate()
    }
}
