import Foundation
import Testing

@testable import DiskURLCache

/// Identical requests in flight share one load where they may, and only then. When they wait no longer:
/// `SharedFetchTests`.
@Suite(.loadsOnLinux, .fewAtATime) struct LoaderSharingTests {
    private static let count = 64

    /// Holds the first request until all others wait for it.
    private func origin(_ gate: Gate, _ fields: OriginFields) throws -> OriginServer {
        try OriginServer { request in
            var response = OriginResponse.ok("\(request.number)", fields)
            if request.number == 1 { response.beforeHead = { gate.wait() } }
            return response
        }
    }

    private func harness() throws -> LoadingHarness {
        try LoadingHarness(session: { $0.httpMaximumConnectionsPerHost = Self.count })
    }

    /// Returns once all tasks but the leader wait in the table.
    private func waiting(_ count: Int, in harness: LoadingHarness) async {
        await harness.cache.untilLoadsWait(count)
    }

    @Test func manyIdenticalRequestsAreOneAtTheOrigin() async throws {
        let gate = Gate()
        let origin = try origin(gate, ["Cache-Control": "max-age=60"])
        let harness = try harness()
        let url = origin.url("/a")
        let events = harness.cache.events()
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<Self.count { group.addTask { try await harness.load(url).text } }
            await waiting(Self.count - 1, in: harness)
            gate.open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(texts == Array(repeating: "1", count: Self.count))
        #expect(origin.requests.count == 1)
        var collapsed = 0
        for _ in 0..<Self.count {
            guard let report = await events.report(), report.isCollapsed else { continue }
            collapsed += 1
            #expect(report.cacheStatus.contains("fwd=uri-miss") && report.cacheStatus.contains("collapsed"))
        }
        #expect(collapsed == Self.count - 1)
    }

    /// Eight loads wait for the first one. If that one is cancelled, another takes its place.
    @Test(arguments: [0, 2]) func aCancelledLoadFailsNoOther(cancelled: Int) async throws {
        let gate = Gate()
        let origin = try origin(gate, ["Cache-Control": "max-age=60"])
        let harness = try harness()
        let url = origin.url("/a")
        var loads = [Task { try await harness.load(url).text }]
        await gate.arrival()
        loads += (0..<8).map { _ in Task { try await harness.load(url).text } }
        await waiting(8, in: harness)
        let load = loads.remove(at: cancelled)
        load.cancel()
        await #expect(throws: (any Error).self) { try await load.value }
        let requests = cancelled == 0 ? 2 : 1
        // The gate holds the first request.
        if requests == 1 { gate.open() }
        for other in loads { #expect(try await other.value == "\(requests)") }
        gate.open()
        #expect(origin.requests.count == requests)
    }

    @Test(arguments: ["Authorization", "Cookie", "Accept-Language", "X-Any"]) func requestsThatDifferShareNothing(
        name: String
    ) async throws {
        let gate = Gate()
        let origin = try OriginServer { request in
            var response = OriginResponse.ok(
                request.fields[name] ?? "none",
                ["Cache-Control": "max-age=60", "Vary": "Cookie, Accept-Language, X-Any"])
            response.beforeHead = { gate.wait() }
            return response
        }
        let harness = try harness()
        let url = origin.url("/a")
        let loads = ["en", "de", "fr"].map { value in
            (value, Task { try await harness.load(url, [name: value]).text })
        }
        await gate.arrival(3)
        gate.open()
        for (value, load) in loads { #expect(try await load.value == value) }
        for value in ["en", "de", "fr"] { #expect(try await harness.load(url, [name: value]).text == value) }
        #expect(origin.requests.count == 3)
    }

    // MARK: In the background

    @Test func staleWhileRevalidateRefreshesOnce() async throws {
        let gate = Gate()
        let origin = try OriginServer { request in
            var response = OriginResponse.ok(
                "\(request.number)", ["Cache-Control": "max-age=1, stale-while-revalidate=60"])
            if request.number == 2 { response.beforeHead = { gate.wait() } }
            return response
        }
        let harness = try harness()
        try await harness.load(origin.url("/a"))
        harness.clock.advance(by: 10)
        let events = harness.cache.events()
        for _ in 1...10 { #expect(try await harness.load(origin.url("/a")).text == "1") }
        await gate.arrival()
        gate.open()
        await events.stored()
        #expect(try await harness.load(origin.url("/a")).text == "2")
        #expect(origin.requests.count == 2)
        // The next time it is refreshed again. The first refresh may end a moment after its answer is stored.
        harness.clock.advance(by: 10)
        try await eventually("another refresh") {
            let text = try await harness.load(origin.url("/a")).text
            return text == "3" && origin.requests.count == 3
        }
    }

    /// Nobody waits for a refresh, so an error that it meets is no answer, even if the origin gives it a lifetime.
    @Test(arguments: [500, 503]) func anErrorDoesNotReplaceWhatIsRefreshed(_ status: Int) async throws {
        let origin = try OriginServer { request in
            let fields: OriginFields = ["Cache-Control": "max-age=1, stale-while-revalidate=600"]
            return request.number == 2
                ? OriginResponse(status: status, fields: fields, body: Data("error".utf8))
                : .ok("\(request.number)", fields)
        }
        let harness = try harness()
        try await harness.load(origin.url("/a"))
        for count in [2, 3] {
            harness.clock.advance(by: 10)
            #expect(try await harness.load(origin.url("/a")).text == "1")
            await eventually("the end of refresh \(count - 1)") {
                origin.requests.count == count && !harness.cache.isRefreshing
            }
            // Where a refresh has failed just now, not each load repeats it.
            if count == 2 { for _ in 0..<5 { #expect(try await harness.load(origin.url("/a")).text == "1") } }
            await eventually("the end of refresh \(count - 1)") {
                origin.requests.count == count && !harness.cache.isRefreshing
            }
        }
        #expect(try await harness.load(origin.url("/a")).text == "3")
        #expect(origin.requests.count == 3)
    }

    /// A refresh is of the whole, whatever the load that began it asked for.
    @Test func refreshBehindAPartialRequestFetchesTheWhole() async throws {
        let origin = try OriginServer { request in
            .ok(
                "body \(request.number) \(request.fields["Range"] ?? "-")",
                ["Cache-Control": "max-age=1, stale-while-revalidate=60"])
        }
        let harness = try harness()
        try await harness.load(origin.url("/"))
        harness.clock.advance(by: 5)
        let events = harness.cache.events()
        let part = try await harness.load(origin.url("/"), ["Range": "bytes=0-3", "If-None-Match": "\"x\""])
        #expect(part.text == "body" && part.status == 206)
        await events.stored()
        #expect(try await harness.load(origin.url("/")).text == "body 2 -")
        #expect(origin.requests.count == 2 && origin.requests.last?.fields["If-None-Match"] == nil)
    }
}
