import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Requests that need not be sent, in whole loads.
@Suite(.fewAtATime) struct LessAskedTests {
    private let clock = ManualClock()

    private func makeCache() -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(memoryCapacity: 4 << 20, diskCapacity: 0)
        configuration.clock = clock.wallClock
        return DiskURLCache(configuration: configuration)
    }

    private func load(
        _ cache: DiskURLCache, _ url: URL, _ fields: [String: String] = [:], method: String = "GET"
    ) async throws -> DiskURLCache.Answer {
        var request = URLRequest(url: url, timeoutInterval: Patience.ofLoads)
        request.httpMethod = method
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return try await cache.data(for: request)
    }

    /// The key names the user, so `Vary: Authorization` tells nothing apart that is stored under it.
    @Test(arguments: [true, false]) func renewedCredentialsFindWhatVariesByThem(namesUser: Bool) async throws {
        let origin = try OriginServer.counting(["Cache-Control": "max-age=60", "Vary": "Accept, Authorization"])
        var configuration = DiskURLCache.Configuration(memoryCapacity: 4 << 20, diskCapacity: 0)
        configuration.keyPolicy =
            namesUser
            ? .standard.identifyingUser { $0.value(forHTTPHeaderField: "X-Account") }
            : .standard.ignoringAuthorization()
        let (cache, url) = (DiskURLCache(configuration: configuration), origin.url("/a"))
        func text(_ token: String, _ account: String?) async throws -> String {
            var fields = ["Authorization": token]
            fields["X-Account"] = account
            let loaded = try await load(cache, url, fields).data
            #expect(cache.cachedResponse(for: URLRequest(url, fields))?.data == loaded)
            return String(decoding: loaded, as: UTF8.self)
        }
        for token in ["1", "2", "3"] { #expect(try await text(token, "anna") == "1") }
        #expect(try await text("4", "boris") == (namesUser ? "2" : "1"))
        for token in ["5", "6"] { #expect(try await text(token, nil) == (namesUser ? "\(Int(token)! - 2)" : "1")) }
    }

    @Test(arguments: ["max-age=0", "no-cache"])
    func equalRequestsThatWaitForAValidationShareIts304(_ control: String) async throws {
        let gate = Gate()
        let origin = try OriginServer { request in
            guard request.fields["If-None-Match"] != nil else {
                return .ok("body", ["Cache-Control": control, "ETag": "\"1\""])
            }
            var answer = OriginResponse.status(304, "", ["ETag": "\"1\"", "Cache-Control": control])
            answer.beforeHead = { gate.wait() }
            return answer
        }
        let (cache, url) = (makeCache(), origin.url("/a"))
        _ = try await load(cache, url)
        clock.advance(by: 100)
        let answers = try await withThrowingTaskGroup(of: DiskURLCache.Answer.self) { group -> [DiskURLCache.Answer] in
            for _ in 0..<5 { group.addTask { try await load(cache, url) } }
            await gate.arrival()
            await cache.untilLoadsWait(4)
            gate.open()
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(origin.requests.count == 2)
        #expect(answers.allSatisfy { $0.data == Data("body".utf8) })
        #expect(answers.filter { $0.report.outcome == .revalidated(.memory) }.count == 1)
        #expect(answers.filter(\.report.isCollapsed).count == 4)
        // A load that begins later asks.
        clock.advance(by: 100)
        _ = try await load(cache, url)
        #expect(origin.requests.count == 3)
    }

    @Test func aServerWhose304FitsNothingIsAskedOnceALoad() async throws {
        let origin = try OriginServer { request in
            request.fields["If-None-Match"] != nil
                ? .status(304, "", ["ETag": "\"else\""]) : .ok("body", ["Cache-Control": "max-age=0", "ETag": "\"1\""])
        }
        let (cache, url) = (makeCache(), origin.url("/a"))
        var counts: [Int] = []
        for _ in 0..<4 {
            let before = origin.requests.count
            #expect(try await load(cache, url).data == Data("body".utf8))
            counts.append(origin.requests.count - before)
            clock.advance(by: 10)
        }
        #expect(counts == [1, 2, 1, 1])
        // Not for ever: the server may have been mended.
        clock.advance(by: 3_600)
        _ = try await load(cache, url)
        #expect(origin.requests.last?.fields["If-None-Match"] == nil)
        #expect(origin.requests.dropLast().last?.fields["If-None-Match"] == "\"1\"")
    }

    /// The client's own condition was sent, and not the cache's: the answer says nothing about what is stored.
    @Test func a304ToTheClientsConditionConfirmsNothingThatWasNotNamed() async throws {
        let origin = try OriginServer { request in
            if request.fields["If-None-Match"] != nil { return .status(304, "", ["ETag": "\"else\""]) }
            if request.fields["If-Modified-Since"] != nil { return .status(304, "", ["Cache-Control": "max-age=600"]) }
            return .ok("\(request.number)", ["Cache-Control": "max-age=0", "ETag": "\"1\""])
        }
        let (cache, url) = (makeCache(), origin.url("/a"))
        for _ in 0..<2 {
            _ = try await load(cache, url)
            clock.advance(by: 10)
        }
        let date = HTTPDate.format(clock.now)
        #expect(try await load(cache, url, ["If-Modified-Since": date]).response.statusCode == 304)
        let count = origin.requests.count
        _ = try await load(cache, url)
        #expect(origin.requests.count == count + 1)
    }

    @Test func a304ForOtherRequestFieldsAnswersTheseTheNextTime() async throws {
        let origin = try OriginServer { request in
            let fields: OriginFields = ["Cache-Control": "max-age=60", "Vary": "User-Agent", "ETag": "\"1\""]
            return request.fields["If-None-Match"] == nil ? .ok("body", fields) : .status(304, "", fields)
        }
        let (cache, url) = (makeCache(), origin.url("/a"))
        let (one, two) = (["User-Agent": "one"], ["User-Agent": "two"])
        _ = try await load(cache, url, one)
        #expect(try await load(cache, url, two).report.outcome == .revalidated(.memory))
        #expect(try await load(cache, url, two).report.outcome == .hit(.memory))
        #expect(try await load(cache, url, one).report.outcome == .hit(.memory))
        #expect(origin.requests.count == 2)
    }

    /// The answer to each POST says that its target has changed (RFC 9111 §4.4), so the GET that follows is sent; what
    /// it brings is stored.
    @Test func theGetAfterARedirectedPostIsStored() async throws {
        let origin = try OriginServer { request in
            request.method == "POST"
                ? .status(303, "See Other", ["Location": "/result"]) : .ok("result", ["Cache-Control": "max-age=60"])
        }
        let cache = makeCache()
        for _ in 0..<2 {
            #expect(try await load(cache, origin.url("/a"), method: "POST").data == Data("result".utf8))
        }
        #expect(try await load(cache, origin.url("/result")).report.outcome == .hit(.memory))
        #expect(origin.requests.map(\.method) == ["POST", "GET", "POST", "GET"])
    }
}
