import Foundation
import Testing

@testable import DiskURLCache

/// The client's own conditions and ranges, answered from a stored whole response.
@Suite struct PresentationTests {
    static func stored(_ fields: HeaderFields, status: Int = 200, body: String = "01234567890") -> PureCache {
        var cache = PureCache()
        var fields = fields
        fields.append("Cache-Control", "max-age=3600")
        _ = cache.load(status: status, answer: fields, body: body)
        cache.now += 3
        return cache
    }

    /// A stored error says the rest of its time; what is no time stays as it came.
    @Test(arguments: [
        (["120"], "117"), (["2"], "0"), (["9", "9"], "6"), (["9", "8"], "9, 8"), (["-7"], "-7"),
        (["-9223372036854775808"], "-9223372036854775808"), (["soon"], "soon"),
    ])
    func retryAfterCountsDown(_ values: [String], _ given: String) {
        var fields: HeaderFields = [:]
        for value in values { fields.append("Retry-After", value) }
        var cache = Self.stored(fields, status: 404)
        #expect(cache.load().fields["Retry-After"] == given)
    }

    // MARK: Conditions

    /// cache-tests `conditional-etag-*-respond*`
    @Test(arguments: [
        ("\"abcdef\"", "\"abcdef\""), ("W/\"abcdef\"", "W/\"abcdef\""), ("W/\"abcdef\"", "\"abcdef\""),
        ("\"abcdef\"", "\"abcdef\", \"1234\", \"5678\""), ("\"abcdef\"", "\"1234\", \"abcdef\", \"5678\""),
        ("\"abcdef\"", "\"1234\", \"5678\", \"abcdef\""), ("\"abcdef\"", "*"), ("abcdef", "abcdef"),
        ("\"abcdefü\"", "\"abcdefü\""),
    ])
    func matchingTagIsAnsweredWith304(_ tag: String, _ condition: String) {
        var cache = Self.stored(["ETag": tag, "Content-Type": "text/plain", "Vary": "Foo", "Date": httpDate()])
        let answer = cache.load(["If-None-Match": condition])
        #expect(answer.source == .stored && answer.status == 304 && answer.body.isEmpty)
        // cache-tests `conditional-304-etag`; RFC 9110 §15.4.5
        #expect(answer.fields["ETag"] == tag)
        #expect(answer.fields["Age"] == "3")
        #expect(answer.fields["Vary"] == "Foo" && answer.fields["Date"] == httpDate())
        #expect(answer.fields["Cache-Control"] == "max-age=3600")
        #expect(answer.fields["Content-Type"] == nil)
    }

    @Test(arguments: ["\"other\"", "", "\"abcde", "W/\"abc\""])
    func otherTagIsAnsweredInFull(_ condition: String) {
        var cache = Self.stored(["ETag": "\"abcdef\""])
        let answer = cache.load(["If-None-Match": condition])
        #expect(answer.source == .stored && answer.status == 200 && !answer.body.isEmpty)
    }

    /// cache-tests `conditional-etag-precedence`
    @Test func tagTakesPrecedenceOverDate() {
        var cache = Self.stored(["ETag": "\"a\"", "Last-Modified": httpDate(-5000)])
        #expect(cache.load(["If-None-Match": "\"a\"", "If-Modified-Since": httpDate(-9000)]).status == 304)
        #expect(cache.load(["If-None-Match": "\"b\"", "If-Modified-Since": httpDate(-1)]).status == 200)
    }

    /// cache-tests `conditional-lm-fresh*`
    @Test func dateIsComparedWithLastModified() {
        var cache = Self.stored(["Last-Modified": httpDate(-3000), "Date": httpDate()])
        #expect(cache.load(["If-Modified-Since": httpDate(-3000)]).status == 304)
        #expect(cache.load(["If-Modified-Since": httpDate(-2000)]).status == 304)
        #expect(cache.load(["If-Modified-Since": httpDate(-3001)]).status == 200)
        #expect(cache.load(["If-Modified-Since": "yesterday"]).status == 200)
        #expect(cache.load(["If-Modified-Since": httpDate(-3000)]).fields["Last-Modified"] == httpDate(-3000))
    }

    @Test func withoutLastModifiedTheDateOfTheResponseCounts() {
        var cache = Self.stored(["Date": httpDate()])
        #expect(cache.load(["If-Modified-Since": httpDate()]).status == 304)
        #expect(cache.load(["If-Modified-Since": httpDate(-3000)]).status == 200)
    }

    @Test func conditionsApplyToHeadToo() {
        var cache = Self.stored(["ETag": "\"a\""])
        #expect(cache.load(method: "HEAD", ["If-None-Match": "\"a\""]).status == 304)
    }

    @Test func conditionsDoNotApplyToErrors() {
        var cache = Self.stored(["ETag": "\"a\""], status: 404)
        #expect(cache.load(["If-None-Match": "\"a\""]).status == 404)
        #expect(cache.load(["Range": "bytes=0-1"]).status == 404)
    }

    // MARK: Ranges

    /// cache-tests `partial-store-complete-reuse-partial*`, `partial-use-stored-headers`
    @Test(arguments: [
        ("bytes=0-1", "01", "bytes 0-1/11"), ("bytes=1-", "1234567890", "bytes 1-10/11"),
        ("bytes=-1", "0", "bytes 10-10/11"), ("bytes=5-500", "567890", "bytes 5-10/11"),
    ])
    func rangeIsAnsweredFromTheWhole(_ range: String, _ body: String, _ contentRange: String) {
        var cache = Self.stored(["A": "1", "Content-Length": "11"])
        let answer = cache.load(["Range": range])
        #expect(answer.source == .stored && answer.status == 206)
        #expect(answer.body == Data(body.utf8))
        #expect(answer.fields["Content-Range"] == contentRange)
        #expect(answer.fields["Content-Length"] == String(body.utf8.count))
        #expect(answer.fields["A"] == "1")
        // The stored response stays whole.
        #expect(cache.load().body.count == 11)
    }

    @Test func rangeBeyondTheEndIsNotSatisfiable() {
        var cache = Self.stored(["Content-Type": "text/plain"])
        let answer = cache.load(["Range": "bytes=11-"])
        #expect(answer.source == .stored && answer.status == 416 && answer.body.isEmpty)
        #expect(answer.fields["Content-Range"] == "bytes */11")
        #expect(answer.fields["Content-Type"] == nil)
    }

    @Test func severalRangesAndOtherUnitsAreForTheOrigin() {
        var cache = Self.stored([:])
        #expect(cache.load(["Range": "bytes=0-1,3-4"], status: 206).decision == .fetch(.unsupportedRange, fields: [:]))
        #expect(cache.load(["Range": "lines=0-1"], status: 206).source == .origin)
    }

    @Test func malformedRangeIsIgnored() {
        var cache = Self.stored([:])
        #expect(cache.load(["Range": "bytes=b-a"]).status == 200)
    }

    @Test func rangeOfAnEncodedResponseIsForTheOrigin() {
        var cache = Self.stored(["Content-Encoding": "gzip"])
        #expect(cache.load(["Range": "bytes=0-1"], status: 206).source == .origin)
        #expect(cache.load().source == .stored)
    }

    /// RFC 9110 §8.4.1
    @Test func identityIsNoCoding() {
        var cache = Self.stored(["Content-Encoding": "identity"])
        #expect(cache.load(["Range": "bytes=0-1"], status: 206).source == .stored)
    }

    @Test func headKnowsNoRange() {
        var cache = Self.stored([:])
        #expect(cache.load(method: "HEAD", ["Range": "bytes=0-1"]).status == 200)
    }

    @Test(arguments: [
        ("\"a\"", 206), ("\"b\"", 200), ("W/\"a\"", 200), (httpDate(-5000), 206), (httpDate(-4999), 200), ("", 200),
    ])
    func ifRangeMustFitStrongly(_ value: String, _ status: Int) {
        var cache = Self.stored(["ETag": "\"a\"", "Last-Modified": httpDate(-5000), "Date": httpDate()])
        #expect(cache.load(["Range": "bytes=0-1", "If-Range": value]).status == status)
    }

    /// RFC 9110 §8.8.2.2
    @Test(arguments: [(59, 200), (60, 206)]) func ifRangeByADateOfTheLastMinuteDoesNotCount(age: Int, status: Int) {
        let changed = httpDate(-TimeInterval(age))
        var cache = Self.stored(["Last-Modified": changed, "Date": httpDate()])
        #expect(cache.load(["Range": "bytes=0-1", "If-Range": changed]).status == status)
    }

    @Test func conditionComesBeforeRange() {
        var cache = Self.stored(["ETag": "\"a\""])
        #expect(cache.load(["Range": "bytes=0-1", "If-None-Match": "\"a\""]).status == 304)
        #expect(cache.load(["Range": "bytes=0-1", "If-None-Match": "\"b\""]).status == 206)
    }

    @Test func rangeIsClampedToABodyThatBecameShorter() {
        let presentation = Presentation.range(3..<9, first: 3, total: 11)
        #expect(presentation.body(of: Data("01234".utf8)) == Data("34".utf8))
        #expect(presentation.body(of: Data()).isEmpty)
        // A slice keeps the indices of what it was cut from.
        #expect(presentation.body(of: Data("xx01234567890".utf8).dropFirst(2)) == Data("345678".utf8))
    }
}
