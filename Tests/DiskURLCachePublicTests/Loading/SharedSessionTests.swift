import DiskURLCache
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The only suite that touches `URLSession.shared`, which belongs to the whole process: one test at a time.
@Suite(.loadsOnLinux, .fewAtATime, .serialized) struct SharedSessionTests {
    #if canImport(FoundationNetworking)
        @Test func attachingToTheLiveConfigurationOfTheSharedSession() async throws {
            let origin = try OriginServer.counting()
            let harness = try LoadingHarness()
            let configuration = URLSession.shared.configuration
            let earlier = configuration.urlCache
            defer { configuration.urlCache = earlier }
            // The session may have been in use before.
            _ = try await URLSession.shared.data(from: origin.url("/before"))
            harness.cache.attach(to: configuration)
            for _ in 1...2 {
                let loaded = try await LoadingHarness.load(URLRequest(origin.url("/a")), in: .shared)
                #expect(loaded.text == "2")
            }
            #expect(harness.cache.contains(URLRequest(origin.url("/a"))))
            #expect(origin.requests.count == 2)
        }
    #endif
}
