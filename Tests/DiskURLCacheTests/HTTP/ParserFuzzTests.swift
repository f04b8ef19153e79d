import Foundation
import Testing

@testable import DiskURLCache

/// Random and mutated field values through every parser. Nothing may trap, and what is read must be within its bounds.
///
/// The seed is fixed, so that what fails once fails again. `TestLength` says how many inputs each parser gets, and how
/// to set another seed.
@Suite(.fewAtATime) struct ParserFuzzTests {
    static let iterations = TestLength.fuzzIterations

    static let properties = ParserProperties(issues(in: "HTTP/ParserProperties.swift"))

    private func check(_ condition: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
        if !condition { Issue.record("see the line", sourceLocation: sourceLocation) }
    }

    /// - Returns: how many inputs `body` took for good ones.
    @discardableResult
    private func run(_ seeds: [String], _ body: (String) -> Bool) -> Int {
        var mutator = Mutator(seeds: seeds)
        return (0..<Self.iterations).count { _ in body(mutator.next()) }
    }

    @Test func dates() {
        let seeds = [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "Fri, 31 Dec 9999 23:59:59 GMT", "Sat, 01 Jan 0000 00:00:00 GMT",
        ]
        #expect(run(seeds, Self.properties.date) > Self.iterations / 100)
    }

    @Test func cacheControl() {
        let seeds = [
            "max-age=3600, no-cache=\"a, b\", private, stale-while-revalidate=60", "no-store",
            "ext=\"max-age=1\\\"\", x",
            "max-stale, min-fresh=1, only-if-cached, max-age=99999999999999999999",
        ]
        run(seeds, Self.properties.cacheControl)
    }

    @Test func structuredFields() {
        let seeds = [
            "a;q=1, (1 \"b\";x -2.5);y, :AQ==:;z=?0", "max-age=60, b;x=2, c=(1 2), d=@12, a=?0",
            "%\"a %c3%bc %f0%9f%98%80\", \"a\\\"\\\\\"", "999999999999999, -999999999999.999, *a/b:c",
        ]
        #expect(run(seeds, Self.properties.structuredField) > Self.iterations / 100)
    }

    @Test func lists() {
        run(["a, \"b, c\", d", "\"\\", "a=\"\\\"\",,", "*, Foo", "en;q=0.5, de"], Self.properties.list)
    }

    @Test func tagsAndRanges() {
        let seeds = [
            "\"a\", W/\"b\", c", "*", "bytes=0-1", "bytes=-5,3-", "bytes 4-9/10", "bytes */10",
            "bytes=9223372036854775807-9223372036854775808",
        ]
        run(seeds, Self.properties.tagOrRange)
    }

    @Test func urls() {
        let seeds = [
            "http://example.com/a/../b?c=%7e#d", "HTTPS://USER:pw@Example.COM.:443/%2e/./x", "http://[::1]:80",
            "https://bücher.example:0443//a%2f", "http://1.2.3.4/?[]", "http://h/%%66/%a%66%%41",
        ]
        #expect(run(seeds, Self.properties.url) > Self.iterations / 100)
    }

    @Test func json() {
        let seeds = ["{\"b\": [1, 2.0, \"x\\n\"], \"a\": {\"c\": null}}", "[[[true]], -1e9, \"\"]", " {} "]
        #expect(run(seeds, Self.properties.json) > Self.iterations / 100)
    }

    /// Whole exchanges of hostile fields: every decision must hold together.
    @Test func decisions() {
        let names = [
            "Cache-Control", "Expires", "Date", "Age", "Last-Modified", "ETag", "Vary", "Content-Range", "Connection",
            "Content-Encoding", "Pragma",
        ]
        let asked = [
            "Cache-Control", "If-None-Match", "If-Modified-Since", "Range", "If-Range", "Foo", "Pragma", "If-Match",
        ]
        let values = [
            "max-age=1", "no-cache", "max-age=5, stale-while-revalidate=5, stale-if-error=9", "must-revalidate", "Foo",
            httpDate(), httpDate(-99), httpDate(99), "\"a\"", "W/\"a\"", "\"b\"", "bytes=0-1", "bytes=1-",
            "bytes 0-2/9",
            "bytes 3-8/9", "1", "x", "",
        ]
        var generator = TestRandom(TestLength.fuzzSeed ?? 2)
        func fields(_ names: [String]) -> HeaderFields {
            var result = HeaderFields()
            for _ in 0..<Int.random(in: 0...5, using: &generator) {
                guard let name = names.randomElement(using: &generator),
                    let value = values.randomElement(using: &generator)
                else { continue }
                result.append(name, value)
            }
            return result
        }
        var cache = PureCache()
        var stored = 0
        for iteration in 0..<Self.iterations / 4 {
            if iteration % 50 == 0 { cache = PureCache() }
            cache.now += [-1e3, 0, 1, 4, 50].randomElement(using: &generator) ?? 0
            cache.options.isOffline = Int.random(in: 0..<20, using: &generator) == 0
            let policies: [ReusePolicy] = [
                .useProtocol, .useProtocol, .elseLoad, .dontLoad, .revalidate(because: .cachePolicy), .reloadIgnoring,
            ]
            let policy = policies.randomElement(using: &generator) ?? .useProtocol
            let status = [200, 200, 206, 304, 404, 416, 500, 301].randomElement(using: &generator) ?? 200
            let method = ["GET", "GET", "GET", "HEAD", "POST"].randomElement(using: &generator) ?? "GET"
            let reply = PureCache.Origin(status: status, fields: fields(names), body: Data("012345678".utf8.prefix(5)))
            let request = fields(asked)
            let answer = cache.load(method: method, request, policy: policy) { _ in reply }
            check(answer.originRequests <= 2)
            if answer.source == .stored { stored += 1 }
            if answer.source == .stored, answer.status == 206 { check(answer.fields["Content-Range"] != nil) }
            if answer.source == .stored { check(answer.fields["Age"].flatMap { Int($0) }.map { $0 >= 0 } == true) }
            // A part is never what a request without a range gets from the store.
            if answer.source != .origin, request["Range"] == nil { check(answer.status != 206) }
        }
        #expect(stored > 0)
    }
}

/// Makes inputs from good ones: a few bytes changed, cut, doubled or spliced, and now and then pure noise.
struct Mutator {
    private let seeds: [[UInt8]]
    private var generator: TestRandom

    init(seeds: [String]) {
        self.seeds = seeds.map { Array($0.utf8) }
        generator = TestRandom(TestLength.fuzzSeed ?? 1)
    }

    mutating func next() -> String {
        var bytes = seeds.randomElement(using: &generator) ?? []
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
            let position = Int.random(in: 0...bytes.count, using: &generator)
            switch Int.random(in: 0..<7, using: &generator) {
            case 0: bytes.insert(interesting(), at: position)
            case 1: if position < bytes.count { bytes[position] = interesting() }
            case 2: if position < bytes.count { bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &generator) }
            case 3: bytes.removeSubrange(position..<min(bytes.count, position + 3))
            case 4: bytes += bytes.prefix(40)
            case 5:
                bytes = Array(bytes.prefix(position)) + Array((seeds.randomElement(using: &generator) ?? []).suffix(9))
            default: if Int.random(in: 0..<50, using: &generator) == 0 { bytes = noise() }
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private static let special = Array("\",;=\\ -/*0199aZGW\t\0\n:".utf8)

    private mutating func interesting() -> UInt8 {
        Self.special.randomElement(using: &generator) ?? 0
    }

    private mutating func noise() -> [UInt8] {
        (0..<Int.random(in: 0..<80, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator) }
    }
}
