import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Errors come as URLSession reports them, and nothing is stored of what failed.
@Suite(.loadsOnLinux, .fewAtATime) struct LoaderErrorTests {
    private func error(_ harness: LoadingHarness, _ request: URLRequest) async -> URLError? {
        do {
            _ = try await harness.session.data(for: request)
            return nil
        } catch {
            return error as? URLError
        }
    }

    @Test func timeoutOfTheRequestAndOfTheConfiguration() async throws {
        let gate = Gate()
        let origin = try OriginServer.held(by: gate, "late")
        var request = URLRequest(origin.url("/a"))
        request.timeoutInterval = 1
        let harness = try LoadingHarness()
        let impatient = try LoadingHarness(session: { $0.timeoutIntervalForRequest = 1 })
        // Both at once: Foundation keeps a processor busy while a load waits for its timeout.
        async let ofTheRequest = error(harness, request)
        async let ofTheConfiguration = error(impatient, URLRequest(origin.url("/b")))
        #expect(await ofTheRequest?.code == .timedOut)
        #expect(await ofTheConfiguration?.code == .timedOut)
        gate.open()
    }

    @Test func offlineServesWhatIsStoredAndFailsElse() async throws {
        let origin = try OriginServer.counting()
        let harness = try LoadingHarness()
        try await harness.load(origin.url("/a"))
        harness.clock.advance(by: 100_000)
        harness.cache.isOffline = true
        #expect(try await harness.load(origin.url("/a")).text == "1")
        let error = await error(harness, URLRequest(origin.url("/b")))
        #expect(error?.code == .notConnectedToInternet)
        let reason = error?.errorUserInfo[NSLocalizedFailureReasonErrorKey] as? String
        #expect(
            reason == "No request was sent (DiskURLCache.isOffline is true): not in the cache.")
        harness.cache.isOffline = false
        #expect(try await harness.load(origin.url("/a")).text == "2")
    }
}
