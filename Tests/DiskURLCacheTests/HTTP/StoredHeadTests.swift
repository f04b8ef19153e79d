import Foundation
import Testing

@testable import DiskURLCache

/// What an app stored for HEAD: it has no body, so it answers HEAD and nothing else (RFC 9111 §4).
@Suite struct StoredHeadTests {
    static func head(_ fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"a\""]) -> PureCache {
        var cache = PureCache()
        let response = StoredResponse(
            method: "HEAD", status: 200, fields: fields, requestTime: cache.now, responseTime: cache.now, vary: .none)
        cache.entries = [PureCache.Entry(response: response, body: Data())]
        return cache
    }

    @Test func responsesAreEqualByAllThatTheySay() {
        func response(_ status: Int, _ fields: HeaderFields) -> StoredResponse {
            StoredResponse(
                method: "GET", status: status, fields: fields, requestTime: PureCache.start,
                responseTime: PureCache.start, vary: .none)
        }
        #expect(response(200, ["A": "1"]) == response(200, ["A": "1"]))
        #expect(response(200, ["A": "1"]) != response(200, ["A": "2"]))
        #expect(response(200, ["A": "1"]) != response(404, ["A": "1"]))
    }

    @Test func answersHead() {
        var cache = Self.head()
        let answer = cache.load(method: "HEAD")
        #expect(answer.source == .stored && answer.status == 200 && answer.fields["ETag"] == "\"a\"")
        #expect(cache.load(method: "HEAD", ["If-None-Match": "\"a\""]).status == 304)
    }

    @Test(arguments: [ReusePolicy.useProtocol, .elseLoad, .dontLoad, .revalidate(because: .cachePolicy)])
    func answersNoGet(_ policy: ReusePolicy) {
        var cache = Self.head()
        #expect(cache.load(policy: policy).source == (policy == .dontLoad ? .unsatisfiable : .origin))
        var other = Self.head()
        #expect(other.load(["Range": "bytes=0-1"], policy: policy).source != .stored)
    }

    @Test func isNoReasonToAskWithACondition() {
        var cache = Self.head()
        cache.now += 100
        let answer = cache.load(answer: ["Cache-Control": "max-age=60"])
        #expect(answer.asked?.fields["If-None-Match"] == nil)
        #expect(answer.decision == .fetch(.notInCache, fields: [:]))
    }

    @Test func standsInForNoGetThatFails() {
        var cache = Self.head(["Cache-Control": "max-age=1, stale-if-error=600"])
        cache.now += 5
        #expect(cache.load(status: 503).source == .origin)
        #expect(cache.load(origin: { _ in nil }).source == .unsatisfiable)
        #expect(cache.load(method: "HEAD", origin: { _ in nil }).source == .staleOnError)
    }

    /// A strong tag freshens every response that has it, but a 304 to a GET says nothing about what has no body.
    @Test func isNotFreshenedByA304ToAGet() {
        var cache = Self.head(["Cache-Control": "max-age=1", "ETag": "\"a\""])
        let get = StoredResponse(
            method: "GET", status: 200, fields: ["Cache-Control": "max-age=1", "ETag": "\"a\""],
            requestTime: cache.now, responseTime: cache.now, vary: .none)
        cache.entries.append(PureCache.Entry(response: get, body: Data("body".utf8)))
        cache.now += 5
        let answer = cache.load { _ in
            PureCache.Origin(status: 304, fields: ["ETag": "\"a\"", "Cache-Control": "max-age=60"], body: Data())
        }
        #expect(answer.source == .validated && answer.body == Data("body".utf8))
        #expect(cache.entries.map(\.response.responseTime) == [PureCache.start, cache.now])
    }

    @Test func nothingElseAnswersAnotherMethod() {
        var cache = PureCache()
        cache.options.furtherMethods = ["QUERY"]
        _ = cache.load(method: "QUERY", answer: ["Cache-Control": "max-age=60"])
        #expect(cache.load(method: "QUERY").source == .stored)
        #expect(cache.load(method: "HEAD").source == .origin)
        #expect(cache.load().source == .origin)
    }

    /// RFC 9111 §4.3.5 speaks of GET; a newer answer to HEAD outdates an older one all the more.
    @Test(arguments: [["ETag": "\"b\""], ["Content-Length": "0"]] as [HeaderFields])
    func givesWayToANewerAnswerToHead(_ answer: HeaderFields) {
        var cache = Self.head()
        _ = cache.load(method: "HEAD", policy: .reloadIgnoring, answer: answer, body: "")
        #expect(cache.entries.count == 1 && cache.entries.first?.response.fields["ETag"] == answer["ETag"])
    }
}
