import DiskURLCache
import DiskURLCacheTesting
import Foundation
import Testing
import XCTest

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The code under test: a client that is given its session.
struct Greeter {
    let session: URLSession
    let url: URL

    func greeting() async throws -> String {
        let (data, _) = try await session.data(from: url)
        return String(decoding: data, as: UTF8.self)
    }
}

@Test func aGreetingIsLoadedOnceAMinute() async throws {
    let clock = DiskURLCache.TestClock()
    let origin = DiskURLCache.StubOrigin(clock: clock) { _ in
        .init(fields: ["Cache-Control": "max-age=60"], body: "hello")
    }
    let cache = DiskURLCache.forTesting(clock: clock)
    let greeter = Greeter(session: cache.makeSession(configuration: origin.configuration), url: origin.url)

    for _ in 1...3 { #expect(try await greeter.greeting() == "hello") }
    #expect(origin.requests.count == 1)

    clock.advance(by: .minutes(2))
    #expect(try await greeter.greeting() == "hello")
    #expect(origin.requests.count == 2)
}

final class OfflineTests: XCTestCase {
    func testTheLastGreetingIsShownWhileTheServerFails() async throws {
        let clock = DiskURLCache.TestClock()
        let origin = DiskURLCache.StubOrigin(clock: clock) { request in
            guard request.value(forHTTPHeaderField: "If-None-Match") == nil else {
                throw URLError(.cannotConnectToHost)
            }
            return .init(fields: ["Cache-Control": "max-age=60", "ETag": "\"1\""], body: "hello")
        }
        let cache = DiskURLCache.forTesting(clock: clock) { $0.staleIfError = .hours(1) }
        let greeter = Greeter(session: cache.makeSession(configuration: origin.configuration), url: origin.url)
        _ = try await greeter.greeting()

        clock.advance(by: .minutes(2))
        let greeting = try await greeter.greeting()
        XCTAssertEqual(greeting, "hello")

        clock.advance(by: .hours(2))
        do {
            _ = try await greeter.greeting()
            XCTFail("an hour later the error is reported")
        } catch {
            XCTAssertEqual((error as? URLError)?.code, .cannotConnectToHost)
        }
    }
}
