import DiskURLCache
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `URLRequest.CachePolicy`, each case as Apple documents it, in the three situations there are.
@Suite(.loadsOnLinux, .fewAtATime) struct LoaderPolicyTests {
    enum Stored: String, Sendable, CaseIterable {
        case fresh, stale, nothing
    }

    /// What the origin is asked.
    enum Asked: Sendable, Equatable {
        case nothing
        /// A request without conditions.
        case plain
        /// `If-None-Match` with the stored tag: the origin says 304.
        case conditional
        /// Both, and `Cache-Control: max-age=0` for the caches on the way.
        case conditionalEndToEnd
        /// `Cache-Control: no-cache` for the caches on the way.
        case reload
        case plainEndToEnd
    }

    enum Delivered: Sendable, Equatable {
        case stored, new
        case error(URLError.Code)
    }

    struct Row: Sendable, CustomTestStringConvertible {
        var policy: URLRequest.CachePolicy
        var stored: Stored
        var asked: Asked
        var delivered: Delivered
        var testDescription: String { "policy \(policy.rawValue), stored \(stored)" }
    }

    static let rows: [Row] = [
        Row(policy: .useProtocolCachePolicy, stored: .fresh, asked: .nothing, delivered: .stored),
        Row(policy: .useProtocolCachePolicy, stored: .stale, asked: .conditional, delivered: .stored),
        Row(policy: .useProtocolCachePolicy, stored: .nothing, asked: .plain, delivered: .new),
        Row(policy: .reloadIgnoringLocalCacheData, stored: .fresh, asked: .reload, delivered: .new),
        Row(policy: .reloadIgnoringLocalCacheData, stored: .stale, asked: .reload, delivered: .new),
        Row(policy: .reloadIgnoringLocalCacheData, stored: .nothing, asked: .reload, delivered: .new),
        Row(policy: .reloadIgnoringLocalAndRemoteCacheData, stored: .fresh, asked: .reload, delivered: .new),
        Row(policy: .reloadIgnoringLocalAndRemoteCacheData, stored: .stale, asked: .reload, delivered: .new),
        Row(policy: .reloadIgnoringLocalAndRemoteCacheData, stored: .nothing, asked: .reload, delivered: .new),
        Row(policy: .returnCacheDataElseLoad, stored: .fresh, asked: .nothing, delivered: .stored),
        Row(policy: .returnCacheDataElseLoad, stored: .stale, asked: .nothing, delivered: .stored),
        Row(policy: .returnCacheDataElseLoad, stored: .nothing, asked: .plain, delivered: .new),
        Row(policy: .returnCacheDataDontLoad, stored: .fresh, asked: .nothing, delivered: .stored),
        Row(policy: .returnCacheDataDontLoad, stored: .stale, asked: .nothing, delivered: .stored),
        Row(
            policy: .returnCacheDataDontLoad, stored: .nothing, asked: .nothing,
            delivered: .error(.resourceUnavailable)),
        Row(policy: .reloadRevalidatingCacheData, stored: .fresh, asked: .conditionalEndToEnd, delivered: .stored),
        Row(policy: .reloadRevalidatingCacheData, stored: .stale, asked: .conditionalEndToEnd, delivered: .stored),
        Row(policy: .reloadRevalidatingCacheData, stored: .nothing, asked: .plainEndToEnd, delivered: .new),
    ]

    @Test(arguments: rows, ["memory", "disk after a restart"])
    func policy(_ row: Row, layer: String) async throws {
        let origin = try OriginServer { request in
            if request.fields["If-None-Match"] == "\"e\"" {
                return .status(304, "", ["ETag": "\"e\"", "Cache-Control": "max-age=60"])
            }
            return .ok(
                request.number == 1 ? "stored" : "new",
                ["ETag": "\"e\"", "Cache-Control": "max-age=60, must-revalidate"])
        }
        let scratch = try ScratchDirectory("policy")
        let clock = ManualClock()
        var harness = try LoadingHarness(directory: scratch, clock: clock)
        let url = origin.url("/a")
        // Some other resource where nothing is to be stored, so that numbers are the same.
        try await harness.load(row.stored == .nothing ? origin.url("/b") : url)
        if row.stored == .stale { clock.advance(by: 100) }
        if layer != "memory" {
            harness.cache.flush()
            harness = try LoadingHarness(directory: scratch, clock: clock)
        }

        var delivered: Delivered
        do {
            let text = try await harness.load(url, policy: row.policy).text
            delivered = text == "stored" ? .stored : .new
        } catch {
            delivered = .error((error as? URLError)?.code ?? .unknown)
        }
        #expect(delivered == row.delivered)

        let requests = origin.requests.dropFirst()
        #expect(requests.count <= 1)
        var asked = Asked.nothing
        if let fields = requests.first?.fields {
            let directives = fields["Cache-Control"]
            switch (fields["If-None-Match"] != nil, directives) {
            case (true, "max-age=0"): asked = .conditionalEndToEnd
            case (true, _): asked = .conditional
            case (false, "max-age=0"): asked = .plainEndToEnd
            case (false, "no-cache"): asked = .reload
            case (false, _): asked = .plain
            }
        }
        #expect(asked == row.asked)
        if row.delivered == .new {
            #expect(try await harness.load(url).text == "new", "what was loaded is stored")
        }
    }

    /// An answer that the cache made itself, and an error, say why nothing was asked.
    @Test func aRequestThatMayNotAskIsToldWhy() async throws {
        for name in [nil, "own"] {
            let harness = try LoadingHarness { $0.cacheStatusName = name }
            let url = Responses.url("/a")
            var request = URLRequest(url, ["Cache-Control": "only-if-cached"])
            let answer = try await harness.cache.data(for: request)
            #expect(answer.response.statusCode == 504)
            #expect(
                answer.response.value(forHTTPHeaderField: "Cache-Status")
                    == "\(name ?? "DiskURLCache"); detail=not-in-cache")
            request = URLRequest(url, policy: .returnCacheDataDontLoad)
            let error = await #expect(throws: URLError.self) { try await harness.cache.data(for: request) }
            #expect(error?.code == .resourceUnavailable)
            #expect(
                error?.userInfo[NSLocalizedFailureReasonErrorKey] as? String
                    == "No request was sent (the cachePolicy forbids it): not in the cache.")
        }
    }

    /// A request that says nothing has the policy of its session's configuration, as on Apple platforms.
    @Test(.enabled(if: LoadingHarness.storesForSessions)) func theSessionsPolicy() async throws {
        let origin = try OriginServer.counting(["Cache-Control": "max-age=60"])
        let harness = try LoadingHarness()
        let url = origin.url("/a")
        func load(_ session: URLRequest.CachePolicy, _ own: URLRequest.CachePolicy = .useProtocolCachePolicy)
            async throws
            -> String
        {
            let session = LoadingHarness.session(of: harness.cache) { $0.requestCachePolicy = session }
            defer { session.invalidateAndCancel() }
            return try await LoadingHarness.load(URLRequest(url, policy: own), in: session).text
        }
        await #expect(throws: URLError.self) { try await load(.returnCacheDataDontLoad) }
        #expect(try await load(.reloadIgnoringLocalCacheData) == "1")
        #expect(try await load(.useProtocolCachePolicy) == "1")
        #expect(try await load(.reloadIgnoringLocalCacheData) == "2")
        #expect(try await load(.reloadIgnoringLocalCacheData, .returnCacheDataElseLoad) == "2")
        harness.clock.advance(by: 3600)
        #expect(try await load(.returnCacheDataElseLoad) == "2")
        #expect(try await load(.useProtocolCachePolicy) == "3")
    }
}
