import DiskURLCache
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Whatever a session's loads came to, nothing keeps the cache once the session and its owner have gone: each load
/// holds it.
@Suite(.loadsOnLinux, .fewAtATime) struct SessionLifetimeTests {
    enum Way: CaseIterable, Sendable {
        case handler, delegate, direct, hit, revalidated, refreshed, redirected, post, failed, cancelled
    }

    @Test(arguments: Way.allCases) func nothingIsLeftOfALoad(_ way: Way) async throws {
        let origin = try OriginServer { request in
            switch (request.path, request.fields["If-None-Match"]) {
            case ("/moved", _): .status(302, "", ["Location": "/a"])
            case (_, _?): .status(304, "", ["ETag": "\"1\"", "Cache-Control": "max-age=60"])
            default: .ok("body", ["ETag": "\"1\"", "Cache-Control": "max-age=60, stale-while-revalidate=60"])
            }
        }
        weak var cache: DiskURLCache?
        do {
            let delegate = RecordingDelegate()
            let harness = try LoadingHarness(delegate: way == .delegate ? delegate : nil)
            cache = harness.cache
            try await load(way, from: origin, harness, delegate)
        }
        // The session lives until its queue has heard of its end, and a refresh goes on by itself.
        await eventually("the release of the cache") { cache == nil }
    }

    private func load(
        _ way: Way, from origin: OriginServer, _ harness: LoadingHarness, _ delegate: RecordingDelegate
    ) async throws {
        let url = origin.url("/a")
        switch way {
        case .handler: try await harness.load(url)
        case .delegate: _ = await delegate.run(harness.session.dataTask(with: url))
        case .direct: _ = try await harness.cache.data(for: URLRequest(url))
        case .hit, .revalidated, .refreshed:
            try await harness.load(url)
            let ages: [Way: TimeInterval] = [.hit: 1, .refreshed: 90, .revalidated: 1_000]
            harness.clock.advance(by: ages[way] ?? 0)
            let report = try await harness.report { try await harness.load(url) }
            switch report.outcome {
            case .hit(.memory): #expect(way == .hit)
            case .revalidated(.memory): #expect(way == .revalidated)
            case .staleHit(.memory, let reason):
                #expect(way == .refreshed && reason.code == "stale-while-revalidate")
            default: Issue.record("\(report)")
            }
        case .redirected: try await harness.load(origin.url("/moved"))
        case .post: try await harness.load(url, method: "POST", body: Data("x".utf8))
        case .failed:
            let refusing = try RefusingPort()
            await #expect(throws: URLError.self) { try await harness.load(refusing.url("/a")) }
            withExtendedLifetime(refusing) {}
        case .cancelled:
            let task = Task { try await harness.load(url) }
            task.cancel()
            _ = await task.result
        }
    }
}
