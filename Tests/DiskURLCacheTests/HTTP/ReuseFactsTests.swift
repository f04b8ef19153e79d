import Foundation
import Testing

@testable import DiskURLCache

/// What an entry keeps of its response changes no decision, and is released with the entry.
@Suite(.fewAtATime) struct ReuseFactsTests {
    private static let arrival = PureCache.start

    private static func date(_ offset: TimeInterval) -> String { HTTPDate.format(arrival + offset) }

    private static let heads: [HeaderFields] = [
        [:],
        ["Cache-Control": "max-age=60, stale-while-revalidate=30"],
        ["Cache-Control": "max-age=60, must-revalidate", "Age": "20"],
        ["Cache-Control": "no-cache", "ETag": "\"e\""],
        ["Cache-Control": "max-age=60, immutable", "Date": date(-30)],
        ["Cache-Control": "max-age=x"],
        ["Date": date(0), "Expires": date(50)],
        ["Date": date(-10), "Expires": "0"],
        ["Date": date(0), "Last-Modified": date(-1_000)],
        ["Last-Modified": "yesterday"],
        ["Cache-Control": "stale-if-error=1000", "Pragma": "no-cache"],
    ]

    @Test(arguments: heads, [200, 404, 503]) func keptFactsDecideAsThoseMadeAnew(fields: HeaderFields, status: Int) {
        let response = StoredResponse(
            method: "GET", status: status, fields: fields, requestTime: Self.arrival - 2, responseTime: Self.arrival,
            vary: .none)
        // The entry keeps its facts from one decision to the next.
        let kept = PureCache.variant(response, body: Data("body".utf8))
        var lifetimes: [CachingOptions.Lifetime] = [.asServed, .whenMissing(seconds: 40), .always(seconds: 70)]
        while let lifetime = lifetimes.popLast() {
            var options = CachingOptions()
            options.lifetime = lifetime
            for asked: HeaderFields in [[:], ["Cache-Control": "max-stale=20"], ["Cache-Control": "max-age=5"]] {
                for policy in [ReusePolicy.useProtocol, .revalidate(because: .cachePolicy), .elseLoad] {
                    for seconds in [-5.0, 0, 10, 45, 65, 80, 5_000] {
                        func decide(_ variant: StoredVariant) -> [String] {
                            let decider = RequestDecider(
                                request: RequestFacts(method: "GET", fields: asked), variants: [variant],
                                policy: policy, options: options, now: Self.arrival + seconds)
                            return [Self.text(decider.decision()), Self.text(decider.errorFallback().reuse)]
                        }
                        #expect(decide(kept) == decide(PureCache.variant(response, length: 4)))
                    }
                }
            }
        }
    }

    /// The decision without the stored variant, which is another one.
    private static func text(_ decision: CacheDecision) -> String {
        switch decision {
        case .useStored(let reuse): text(reuse)
        case .revalidate(let revalidation): "\(revalidation.fields) \(revalidation.reason)"
        case .fetch(let reason, let fields): "fetch \(reason) \(fields)"
        case .unsatisfiable(let reason): "unsatisfiable \(reason)"
        }
    }

    private static func text(_ reuse: Reuse?) -> String {
        guard let reuse else { return "none" }
        let refresh = reuse.backgroundRevalidation.map { text(.revalidate($0)) } ?? ""
        return "\(String(describing: reuse.allowance)) \(reuse.freshness) \(reuse.presentation) \(refresh)"
    }

    @Test func anEntryMakesThemOnce() {
        let response = StoredResponse(
            method: "GET", status: 200, fields: ["Cache-Control": "max-age=60"], requestTime: Self.arrival,
            responseTime: Self.arrival, vary: .none)
        let entry = Self.entry(.http(response))
        #expect(entry.reuseFacts != nil && entry.reuseFacts === entry.reuseFacts)
        #expect(entry.reuseFacts?.statedLifetime(inSharedCache: false)?.seconds.count == 60)
        let other = Self.entry(.other(mimeType: nil, expectedContentLength: -1, textEncodingName: nil))
        #expect(other.reuseFacts == nil)
    }

    private static func entry(_ response: EntryMetadata.Response) -> StoredEntry {
        StoredEntry(
            metadata: EntryMetadata(
                sequence: 1, url: nil, response: response, storedAt: arrival, placement: .memoryAndDisk, userInfo: [:],
                tags: [], isPinned: false),
            body: Data())
    }

    /// A 304 makes another response of it: what was known of the old one is no longer true.
    @Test(.loadsOnLinux) func aFreshenedEntryIsJudgedAnew() async throws {
        let origin = try OriginServer { request in
            request.fields["If-None-Match"] == nil
                ? .ok("body", ["Cache-Control": "max-age=10", "ETag": "\"e\""])
                : .status(304, "", ["Cache-Control": "max-age=1000", "ETag": "\"e\""])
        }
        let harness = try LoadingHarness()
        let url = origin.url("/a")
        try await harness.load(url)
        // From memory: the facts are made.
        try await harness.load(url)
        harness.clock.advance(by: 20)
        try await harness.load(url)
        #expect(origin.requests.count == 2)
        harness.clock.advance(by: 500)
        let loaded = try await harness.load(url)
        #expect(loaded["Age"] == "500")
        #expect(origin.requests.count == 2)
        harness.clock.advance(by: 600)
        try await harness.load(url)
        #expect(origin.requests.count == 3)
    }
}
