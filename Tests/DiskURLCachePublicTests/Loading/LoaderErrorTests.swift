import DiskURLCache
import DiskURLCacheTools
import Foundation
import Testing

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

    /// The reason is the directive, not the age.
    @Test(arguments: [
        ("max-age=0, must-revalidate", "must-revalidate, proxy-revalidate or s-maxage forbids stale use."),
        ("max-age=600, no-cache", "the stored response says no-cache."),
    ])
    func aDirectiveThatForbidsUseOfflineIsNamed(_ control: String, _ words: String) async throws {
        let origin = try OriginServer.counting(["Cache-Control": control, "ETag": "\"a\""])
        let harness = try LoadingHarness()
        let request = URLRequest(origin.url("/a"))
        _ = try await harness.cache.data(for: request)
        harness.clock.advance(by: 60)
        harness.cache.isOffline = true
        let error = await #expect(throws: URLError.self) { _ = try await harness.cache.data(for: request) }
        let reason = error?.errorUserInfo[NSLocalizedFailureReasonErrorKey] as? String
        let advice = "Without the network, the option fallback: .anyStored uses it all the same."
        #expect(reason == "No request was sent (DiskURLCache.isOffline is true): \(words) \(advice)")
        let explanation = harness.cache.explanation(for: request)
        #expect(explanation.description.contains(words))
        #expect(explanation.description.contains("the option fallback: .anyStored uses it all the same"))
        #expect(!explanation.description.contains("max-age above 0"))
    }

    /// A network error says why the stored response did not replace it.
    @Test func aNetworkErrorSaysWhyTheStoredResponseWasNotUsed() async throws {
        let isDown = Flag()
        let origin = try OriginServer { request in
            if isDown.value { return OriginResponse(ending: .noResponse) }
            return .ok("x", ["Cache-Control": request.path == "/must" ? "max-age=1, must-revalidate" : "max-age=1"])
        }
        let harness = try LoadingHarness()
        for path in ["/must", "/a"] { _ = try await harness.cache.data(for: URLRequest(origin.url(path))) }
        harness.clock.advance(by: 60)
        isDown.set()
        for (path, words) in [
            (
                "/must",
                "must-revalidate, proxy-revalidate or s-maxage forbids stale use. "
                    + "Without the network, the option fallback: .anyStored uses it all the same."
            ),
            (
                "/a",
                "neither the response nor a setting has stale-if-error. The origin could send stale-if-error=…; "
                    + "the app can set staleIfError in a rule or in the configuration."
            ),
        ] {
            let request = URLRequest(origin.url(path))
            let error = await #expect(throws: URLError.self) { _ = try await harness.cache.data(for: request) }
            #expect(error?.code != .notConnectedToInternet)
            #expect(
                error?.errorUserInfo[NSLocalizedFailureReasonErrorKey] as? String
                    == "A stored response was not used instead: \(words)")
        }
        // Nothing is stored: nothing is said.
        let error = await #expect(throws: URLError.self) {
            _ = try await harness.cache.data(for: URLRequest(origin.url("/other")))
        }
        #expect(error?.errorUserInfo[NSLocalizedFailureReasonErrorKey] == nil)
    }
}
