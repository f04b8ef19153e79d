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

    @Test func refusedConnection() async throws {
        let refusing = try RefusingPort()
        let url = refusing.url("/a")
        let harness = try LoadingHarness()
        let plain = URLSession(configuration: .ephemeral.patient)
        var expected: URLError?
        do { _ = try await plain.data(from: url) } catch { expected = error as? URLError }
        let actual = await error(harness, URLRequest(url))
        withExtendedLifetime(refusing) {}
        #expect(expected?.code == .cannotConnectToHost)
        #expect(actual?.code == expected?.code)
    }

    @Test func timeoutOfTheRequestAndOfTheConfiguration() async throws {
        let gate = Gate()
        let origin = try OriginServer { _ in
            var response = OriginResponse.ok("late")
            response.beforeHead = { gate.wait() }
            return response
        }
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

    @Test(arguments: [true, false]) func cutBodyFailsAndIsNotStored(isChunked: Bool) async throws {
        let origin = try OriginServer { request in
            OriginResponse(
                fields: ["Cache-Control": "max-age=60"], body: Data(repeating: 1, count: 1_000), isChunked: isChunked,
                ending: request.number <= 2 ? .cutBody(after: 500) : .keepAlive)
        }
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(delegate: delegate)
        #expect(await error(harness, URLRequest(origin.url("/a"))) != nil)
        let record = await delegate.run(harness.session.dataTask(with: origin.url("/a")))
        #expect(record.error is URLError)
        #expect(!harness.cache.contains(URLRequest(origin.url("/a"))))
        #expect(try await harness.load(origin.url("/a")).data.count == 1_000)
        #expect(origin.requests.count == 3)
    }

    @Test func cutBodyLeavesWhatWasStoredBefore() async throws {
        let origin = try OriginServer { request in
            OriginResponse(
                fields: ["Cache-Control": "max-age=60"], body: Data("\(request.number)".utf8),
                ending: request.number == 2 ? .cutBody(after: 0) : .keepAlive)
        }
        let harness = try LoadingHarness()
        try await harness.load(origin.url("/a"))
        #expect(await error(harness, URLRequest(origin.url("/a"), policy: .reloadIgnoringLocalCacheData)) != nil)
        #expect(try await harness.load(origin.url("/a")).text == "1")
    }

    @Test func staleIfErrorStandsInForAFailedConnectionAndForA503() async throws {
        let origin = try OriginServer { request in
            switch request.number {
            case 1: .ok("good", ["Cache-Control": "max-age=1, stale-if-error=60"])
            case 2: .status(503, "Busy")
            default: OriginResponse(ending: .noResponse)
            }
        }
        let harness = try LoadingHarness()
        try await harness.load(origin.url("/a"))
        harness.clock.advance(by: 10)
        for _ in 1...2 { #expect(try await harness.load(origin.url("/a")).text == "good") }
        harness.clock.advance(by: 100)
        #expect(await error(harness, URLRequest(origin.url("/a"))) != nil)
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
            reason == "The network was not asked (DiskURLCache.isOffline is true), and nothing that fits is stored.")
        harness.cache.isOffline = false
        #expect(try await harness.load(origin.url("/a")).text == "2")
    }

    @Test func onlyIfCachedWithoutAnythingStoredIs504() async throws {
        let origin = try OriginServer.counting()
        let harness = try LoadingHarness()
        let loaded = try await harness.load(origin.url("/a"), ["Cache-Control": "only-if-cached"])
        #expect(loaded.status == 504 && loaded.data.isEmpty)
        #expect(origin.requests.isEmpty)
    }
}
