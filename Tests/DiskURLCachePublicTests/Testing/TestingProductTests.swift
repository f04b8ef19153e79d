import DiskURLCache
import DiskURLCacheTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The product `DiskURLCacheTesting`, used as an app's own tests use it: through public API alone.
@Suite(.loadsOnLinux, .fewAtATime) struct TestingProductTests {
    let clock = DiskURLCache.TestClock(date: Date(timeIntervalSince1970: 1_800_000_000))

    private func session(_ cache: DiskURLCache, _ origin: DiskURLCache.StubOrigin) -> URLSession {
        cache.makeSession(configuration: origin.configuration)
    }

    @Test func aResponseExpiresByTheClockOfTheTest() async throws {
        let cache = DiskURLCache.forTesting(clock: clock)
        let origin = DiskURLCache.StubOrigin(clock: clock) { _ in
            .init(fields: ["Cache-Control": "max-age=60"], body: "one")
        }
        let session = session(cache, origin)
        let url = origin.url.appendingPathComponent("a")
        for _ in 0..<3 {
            let (data, _) = try await session.data(from: url)
            #expect(String(decoding: data, as: UTF8.self) == "one")
        }
        #expect(origin.requests.count == 1)
        clock.advance(by: 61)
        _ = try await session.data(from: url)
        #expect(origin.requests.count == 2)
    }

    @Test func aRefreshInTheBackgroundIsWaitedFor() async throws {
        let cache = DiskURLCache.forTesting(clock: clock)
        let fields = ["Cache-Control": "max-age=60, stale-while-revalidate=600"]
        let (clock, start) = (clock, clock.date)
        let origin = DiskURLCache.StubOrigin(clock: clock) { _ in
            let number = clock.date == start ? 1 : 2
            // A slow origin: the refresh is in progress when the stale response is there.
            if number == 2 { Thread.sleep(forTimeInterval: 0.1) }
            return .init(fields: fields, body: "\(number)")
        }
        let session = session(cache, origin)
        func load() async throws -> String {
            String(decoding: try await session.data(from: origin.url).0, as: UTF8.self)
        }
        #expect(try await load() == "1")
        clock.advance(by: 61)
        #expect(try await load() == "1")
        await cache.waitUntilIdle()
        #expect(try await load() == "2")
        #expect(origin.requests.count == 2)
    }

    @Test func eachOriginAnswersItsRequestsOnly() async throws {
        let cache = DiskURLCache.forTesting(clock: clock)
        let first = DiskURLCache.StubOrigin(clock: clock) { _ in .init(body: "first") }
        let second = DiskURLCache.StubOrigin(clock: clock) { _ in .init(body: "second") }
        let session = session(cache, first)
        let (one, _) = try await session.data(from: first.url)
        let (two, _) = try await session.data(from: second.url)
        #expect(String(decoding: one + two, as: UTF8.self) == "firstsecond")
        #expect(first.requests.count == 1 && second.requests.count == 1)
    }

    @Test func anErrorOfTheOriginFailsTheLoad() async throws {
        let cache = DiskURLCache.forTesting(clock: clock)
        let origin = DiskURLCache.StubOrigin(clock: clock) { _ in throw URLError(.networkConnectionLost) }
        let session = session(cache, origin)
        await #expect(throws: URLError.self) { _ = try await session.data(from: origin.url) }
    }

    @Test func aStubAnswersByPathOneAfterTheOther() async throws {
        let origin = DiskURLCache.StubOrigin(clock: clock)
        origin.respond(to: "/a", with: .init(body: "one"), .init(status: 500), .init(body: "three"))
        origin.respond(to: "/", with: .init(body: "root"))
        origin.respond(to: "/a%20b/", with: .init(body: "folder"))
        let session = URLSession(configuration: origin.configuration)
        func status(_ path: String) async throws -> String {
            let url = try #require(URL(string: path, relativeTo: origin.url))
            let (data, response) = try await session.data(from: url)
            return "\((response as? HTTPURLResponse)?.statusCode ?? 0) \(String(decoding: data, as: UTF8.self))"
        }
        #expect(try await status("/a%20b/") == "200 folder")
        #expect(try await status("/a%20b") == "404 ")
        for expected in ["200 one", "500 ", "200 three", "200 three"] {
            #expect(try await status("/a?query") == expected)
        }
        #expect(try await status("/") == "200 root")
        #expect(try await status("/b") == "404 ")
        var head = URLRequest(url: origin.url)
        head.httpMethod = "HEAD"
        #expect(try await session.data(for: head).0.isEmpty)
        origin.respond(to: "/a")
        #expect(try await status("/a") == "404 ")
    }

    @Test func codeUnderTestSleepsByTheClockOfTheTest() async throws {
        func firstSleep(of clock: some Clock<Duration>) async throws -> Duration {
            let start = clock.now
            try await clock.sleep(for: .seconds(60))
            return start.duration(to: clock.now)
        }
        let clock = clock
        let slept = Task { try await firstSleep(of: clock) }
        let cancelled = Task { try await firstSleep(of: clock) }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        // The task may begin to sleep only after some of the steps.
        let isOver = Guarded(false)
        Task {
            _ = await slept.result
            isOver.withLock { $0 = true }
        }
        await eventually("the end of the sleep") {
            clock.advance(by: 1)
            return isOver.withLock { $0 }
        }
        #expect(try await slept.value >= .seconds(60))
        try await clock.sleep(until: clock.now, tolerance: nil)
    }

    /// As dates, two halves of 100 ms are less than the whole.
    @Test func stepsOfTheClockAddUp() async throws {
        let clock = clock
        let end = clock.now.advanced(by: .milliseconds(100))
        for _ in 1...2 { clock.advance(by: .init(.milliseconds(50))) }
        let isOver = Guarded(false)
        let sleeper = Task {
            try await clock.sleep(until: end, tolerance: nil)
            isOver.withLock { $0 = true }
        }
        await eventually("the end of the sleep") { isOver.withLock { $0 } }
        sleeper.cancel()
        #expect(clock.now >= end)
    }

    @Test func aCacheForTestingOpensNoFolder() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        let cache = DiskURLCache.forTesting(clock: clock) { $0.directory = folder }
        let origin = DiskURLCache.StubOrigin(clock: clock) { _ in
            .init(fields: ["Cache-Control": "max-age=60"], body: "one")
        }
        _ = try await session(cache, origin).data(from: origin.url)
        cache.flush()
        #expect(cache.openingError == nil)
        #expect(!FileManager.default.fileExists(atPath: folder.path))
    }
}
