import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheAdapters
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Random requests against random stored responses: the load that follows an explanation goes the way that was
/// explained.
@Suite("A load does what its explanation says", .fewAtATime) struct ExplanationAgreementTests {
    /// What an origin answers.
    private struct Answer: Sendable {
        var status: Int
        var fields: [String: String]
        var body: String
    }

    private struct Origin: DiskURLCache.Transport {
        let answer: Answer
        /// Confirms what is stored, with its tag, or for want of one with its date.
        var confirms = false
        /// The client's tags come before those of what is stored.
        var hasOwnTags = false
        var fails = false

        func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
            if fails { throw URLError(.cannotConnectToHost) }
            guard confirms else {
                receiver.receive(
                    DiskURLCache.Head(status: answer.status, fields: answer.fields.map { ($0.key, $0.value) }))
                return await receiver.receive(Data(answer.body.utf8))
            }
            var fields: [(String, String)] = []
            let tags = request["If-None-Match"]?.components(separatedBy: ", ") ?? []
            if let tag = hasOwnTags ? tags.last : tags.first { fields.append(("ETag", tag)) }
            if let date = request["If-Modified-Since"] {
                fields.append(("Last-Modified", date))
            }
            receiver.receive(DiskURLCache.Head(status: 304, fields: fields))
        }
    }

    private struct Draw {
        var random: TestRandom
        let clock: ManualClock

        /// One of them, each as likely.
        mutating func one<Value>(_ values: [Value]) -> Value {
            values[Int(random.next() % UInt64(values.count))]
        }

        mutating func isTrue(oneIn count: UInt64) -> Bool { random.next() % count == 0 }

        func date(_ seconds: TimeInterval) -> String { HTTPDate.format(clock.now.addingTimeInterval(seconds)) }

        mutating func answer() -> Answer {
            var fields: [String: String] = [:]
            if !isTrue(oneIn: 6) { fields["Date"] = date(one([0, 0, 0, -20, 30])) }
            if !isTrue(oneIn: 4) {
                fields["Cache-Control"] = one([
                    "max-age=60", "max-age=60", "max-age=10", "max-age=0", "no-cache", "no-store", "public",
                    "private, max-age=60", "max-age=5, must-revalidate", "max-age=5, stale-while-revalidate=100",
                    "max-age=5, stale-if-error=9", "s-maxage=30, max-age=5", "immutable, max-age=20", "max-age=x",
                    "must-understand, no-store, max-age=30", "no-cache=\"Set-Cookie\", max-age=60",
                    "max-age=5, proxy-revalidate",
                ])
            }
            if isTrue(oneIn: 4) { fields["Expires"] = one([date(40), date(-40), "0"]) }
            if isTrue(oneIn: 5) { fields["Age"] = one(["5", "100", "x"]) }
            if isTrue(oneIn: 3) { fields["ETag"] = one(["\"1\"", "\"2\"", "W/\"1\""]) }
            if isTrue(oneIn: 3) { fields["Last-Modified"] = date(one([-1_000, -100_000, 50])) }
            if isTrue(oneIn: 3) { fields["Vary"] = one(["Accept-Language", "Accept-Language, X-Other", "*"]) }
            if isTrue(oneIn: 3) { fields["Content-Type"] = one(["text/plain", "image/png"]) }
            if isTrue(oneIn: 12) { fields["Set-Cookie"] = "a=1" }
            if isTrue(oneIn: 12) { fields["Pragma"] = "no-cache" }
            let status = one([200, 200, 200, 200, 203, 204, 206, 301, 302, 404, 410, 500])
            if (300...399).contains(status) { fields["Location"] = "https://example.com/elsewhere" }
            if status == 206 {
                fields["Content-Range"] = one(["bytes 0-3/10", "bytes 2-5/10", "bytes 0-3/*", "bytes 0-3/4", "none"])
            }
            return Answer(status: status, fields: fields, body: status == 204 ? "" : "body")
        }

        mutating func request(_ path: String) -> URLRequest {
            var request = Responses.request(path)
            request.httpMethod = one(["GET", "GET", "GET", "GET", "GET", "HEAD", "POST"])
            if isTrue(oneIn: 3) { request.setValue(one(["de", "en"]), forHTTPHeaderField: "Accept-Language") }
            if isTrue(oneIn: 12) { request.setValue("Bearer a", forHTTPHeaderField: "Authorization") }
            return request
        }

        /// What a client may ask of a cache.
        mutating func wishes(_ request: inout URLRequest) {
            if isTrue(oneIn: 3) {
                let control = one([
                    "no-cache", "no-store", "max-age=0", "max-age=30", "max-stale", "max-stale=50", "min-fresh=20",
                    "only-if-cached", "only-if-cached, max-stale", "no-cache, only-if-cached", "max-age=x",
                ])
                request.setValue(control, forHTTPHeaderField: "Cache-Control")
            }
            if isTrue(oneIn: 12) { request.setValue("no-cache", forHTTPHeaderField: "Pragma") }
            if isTrue(oneIn: 4) {
                let range = one([
                    "bytes=0-1", "bytes=2-", "bytes=-2", "bytes=10-20", "bytes=0-0,2-3", "items=1-2", "x", "bytes=3-4",
                ])
                request.setValue(range, forHTTPHeaderField: "Range")
            }
            let conditions = [
                ("If-None-Match", ["\"1\"", "*", "\"2\"", "W/\"1\"", "\"3\", \"1\"", "x"]),
                ("If-Modified-Since", [date(-1_000), date(0), "x"]), ("If-Match", ["\"1\""]),
                ("If-Unmodified-Since", [date(0)]), ("If-Range", ["\"1\"", date(-1_000)]),
            ]
            for (name, values) in conditions where isTrue(oneIn: 12) {
                request.setValue(one(values), forHTTPHeaderField: name)
            }
            if isTrue(oneIn: 3) {
                request.cachePolicy = one([
                    .reloadIgnoringLocalCacheData, .returnCacheDataElseLoad, .returnCacheDataDontLoad,
                    .reloadRevalidatingCacheData,
                ])
            }
            if isTrue(oneIn: 8) {
                request.cacheOptions = one([
                    DiskURLCache.Options(storage: .never), DiskURLCache.Options(storage: .memoryOnly),
                    DiskURLCache.Options(lifetime: .always(25)), DiskURLCache.Options(lifetime: .whenMissing(25)),
                    DiskURLCache.Options(staleWhileRevalidate: 50), DiskURLCache.Options(staleIfError: 50),
                ])
            }
        }
    }

    @Test(arguments: [false, true]) func whatIsExplainedHappens(isShared: Bool) async throws {
        let scratch = try ScratchDirectory()
        let clock = ManualClock()
        var settings = DiskURLCache.Configuration(
            memoryCapacity: 8 << 20, diskCapacity: 64 << 20, directory: scratch.appending("cache"))
        settings.clock = clock.wallClock
        settings.platform = .linux
        settings.isShared = isShared
        settings.keyPolicies = ["other": DiskURLCache.KeyPolicy.standard.includingBody(ofMethods: "POST")]
        settings.rules = [
            DiskURLCache.Rule(for: .contentType("image/*"), lifetime: .whenMissing(30)),
            DiskURLCache.Rule(for: .url("https://example.com/never*"), storage: .never),
            DiskURLCache.Rule(for: .url("https://example.com/posts*"), keyPolicy: "other"),
        ]
        let cache = DiskURLCache(configuration: settings)
        let seed = TestLength.fuzzSeed ?? 1
        for number in 0..<TestLength.pick(plain: 150, long: 2_000) {
            let draw = Draw(random: TestRandom(seed << 32 + number), clock: clock)
            try await check(draw, number, cache)
        }
    }

    private func check(_ given: Draw, _ number: Int, _ cache: DiskURLCache) async throws {
        var draw = given
        let path = draw.one(["/a", "/a", "/a", "/a", "/posts", "/never"]) + "\(number)"
        func load(_ request: URLRequest, _ origin: Origin) async throws -> DiskURLCache.Report {
            let stream = try await cache.load(request, through: origin, redirect: { _, _, _ in nil })
            for try await _ in stream {}
            return stream.report
        }
        var stored: [String] = []
        for _ in 0..<draw.one([0, 1, 1, 2, 3]) {
            var request = draw.request(path)
            request.cachePolicy = .reloadIgnoringLocalCacheData
            let answer = draw.answer()
            if answer.status == 206 { request.setValue("bytes=0-3", forHTTPHeaderField: "Range") }
            let report = try await load(request, Origin(answer: answer))
            stored.append("\(request.allHTTPHeaderFields ?? [:]) \(answer) \(report.notStoredReason as Any)")
            draw.clock.advance(by: draw.one([0, 1, 8, 25]))
        }
        if draw.isTrue(oneIn: 3) {
            cache.flush()
            if draw.isTrue(oneIn: 2) { cache.removeAllCachedResponses(from: .memory) }
        }
        var made = draw.request(path)
        draw.wishes(&made)
        let request = made
        cache.isOffline = draw.isTrue(oneIn: 10)
        let answer = draw.answer()
        let explanation = cache.explanation(
            for: request, response: Responses.http(Responses.url(path), status: answer.status, fields: answer.fields))
        let description = """
            \(number): \(made.httpMethod ?? "") \(made) \(made.cachePolicy.rawValue) \(made.allHTTPHeaderFields ?? [:])
            \(stored)
            \(answer)
            \(explanation)
            """
        var origin = Origin(answer: answer)
        if case .revalidated = explanation.outcome { origin.confirms = true }
        origin.hasOwnTags = request.value(forHTTPHeaderField: "If-None-Match") != nil
        origin.fails = draw.isTrue(oneIn: 5)
        var report: DiskURLCache.Report?
        do {
            report = try await load(request, origin)
        } catch let error as URLError where error.code == .cannotConnectToHost {
            #expect(origin.fails && !explanation.description.contains(Self.standIn), "\(description)")
        } catch {
            let isExplained = if case .notAllowed = explanation.outcome { true } else { false }
            #expect(isExplained, "\(error) \(description)")
        }
        cache.isOffline = false
        guard let report else { return }
        // What is fresh, and was to be asked about by the request's wish, stands in as a hit.
        if origin.fails || answer.status == 500, report.outcome.isFromStore, !explanation.outcome.isFromStore {
            #expect(explanation.description.contains(Self.standIn), "\(description)")
            return
        }
        #expect(Self.isSame(report.outcome, explanation.outcome), "\(report.outcome) \(description)")
        switch report.outcome {
        case .miss, .expired, .bypass: #expect(report.notStoredReason == explanation.notStoredReason, "\(description)")
        default: break
        }
    }

    /// What an explanation says where a failure of the network would be made good.
    private static let standIn = Explainer.standsIn

    /// What an explanation finds on disk is in memory from then on.
    private static func isSame(_ load: DiskURLCache.Report.Outcome, _ explained: DiskURLCache.Report.Outcome) -> Bool {
        switch (load, explained) {
        case (.hit(.memory), .hit(.disk)), (.revalidated(.memory), .revalidated(.disk)): true
        case (.staleHit(.memory, let reason), .staleHit(.disk, let other)): reason == other
        default: load == explained
        }
    }
}

extension DiskURLCache.Report.Outcome {
    /// Without a word of the origin.
    fileprivate var isFromStore: Bool {
        switch self {
        case .hit, .staleHit: true
        default: false
        }
    }
}
