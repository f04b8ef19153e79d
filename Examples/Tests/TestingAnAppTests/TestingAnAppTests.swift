import DiskURLCache
import Foundation
import Testing
import XCTest

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A session of its own for each test: a cache in memory only, and the stub in place of the network.
func makeSession() -> (cache: DiskURLCache, session: URLSession) {
    let cache = DiskURLCache(memoryCapacity: 4 << 20, diskCapacity: 0)
    let configuration = URLSessionConfiguration.ephemeral
    configuration.protocolClasses = [StubProtocol.self]
    return (cache, cache.makeSession(configuration: configuration))
}

@Test func aFreshResponseIsRequestedOnce() async throws {
    StubProtocol.answer("fresh.example") { _ in .init(fields: ["Cache-Control": "max-age=60"], body: "hello") }
    let (_, session) = makeSession()
    let url = try #require(URL(string: "http://fresh.example/greeting"))

    for _ in 1...3 {
        let (data, _) = try await session.data(from: url)
        #expect(String(decoding: data, as: UTF8.self) == "hello")
    }

    #expect(StubProtocol.requests(to: "fresh.example") == 1)
}

final class ExpiryTests: XCTestCase {
    /// `Age: 61` makes a response with `max-age=60` stale on arrival: expiry is tested without waiting.
    func testAStaleResponseIsConfirmedByItsTag() async throws {
        StubProtocol.answer("stale.example") { request in
            let fields = ["Cache-Control": "max-age=60", "Age": "61", "ETag": "\"1\""]
            let isKnown = request.value(forHTTPHeaderField: "If-None-Match") == "\"1\""
            return .init(status: isKnown ? 304 : 200, fields: fields, body: isKnown ? "" : "hello")
        }
        let (cache, session) = makeSession()
        let url = try XCTUnwrap(URL(string: "http://stale.example/greeting"))

        _ = try await session.data(from: url)
        let (data, _) = try await session.data(from: url)

        XCTAssertEqual(String(decoding: data, as: UTF8.self), "hello")
        XCTAssertEqual(StubProtocol.requests(to: "stale.example"), 2)
        XCTAssertEqual(cache.statistics.revalidations, 1)
    }
}
