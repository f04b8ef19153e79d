import Foundation
import Testing

@testable import DiskURLCache

/// Random and mutated field values through every parser. Nothing may trap, and what is read must be within its bounds.
///
/// The seed is fixed, so that what fails once fails again. `TestLength` says how many inputs each parser gets, and how
/// to set another seed.
@Suite(.fewAtATime) struct ParserFuzzTests {
    static let iterations = TestLength.fuzzIterations

    /// As `#expect`, which takes too long to be evaluated millions of times.
    func check(
        _ condition: Bool, _ input: @autoclosure () -> String = "", sourceLocation: SourceLocation = #_sourceLocation
    ) {
        if !condition { Issue.record("\(input())", sourceLocation: sourceLocation) }
    }

    @Test func dates() {
        let seeds = [
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994",
            "Fri, 31 Dec 9999 23:59:59 GMT", "Sat, 01 Jan 0000 00:00:00 GMT",
        ]
        var mutator = Mutator(seeds: seeds)
        var parsed = 0
        for _ in 0..<Self.iterations {
            let text = mutator.next()
            guard let date = HTTPDate.parse(text, reference: PureCache.start) else { continue }
            parsed += 1
            check(abs(date.timeIntervalSince1970) < 3e11, text)
            // Written in the one form that is sent it means the same.
            check(HTTPDate.parse(HTTPDate.format(date), reference: PureCache.start) == date, text)
        }
        #expect(parsed > Self.iterations / 100)
    }

    @Test func cacheControl() {
        let seeds = [
            "max-age=3600, no-cache=\"a, b\", private, stale-while-revalidate=60", "no-store",
            "ext=\"max-age=1\\\"\", x",
            "max-stale, min-fresh=1, only-if-cached, max-age=99999999999999999999",
        ]
        var mutator = Mutator(seeds: seeds)
        for _ in 0..<Self.iterations {
            let text = mutator.next()
            let said = ResponseDirectives(["Cache-Control": text, "Pragma": text])
            if let seconds = said.maxAge {
                check((0...FieldSyntax.greatestDeltaSeconds).contains(seconds.count))
            }
            for name in said.noCacheFields { check(FieldSyntax.isToken(name), text) }
            let asked = RequestDirectives(["Cache-Control": text])
            for seconds in [asked.maxAge, asked.minFresh, asked.staleIfError] {
                check(seconds.map { (0...FieldSyntax.greatestDeltaSeconds).contains($0) } ?? true, text)
            }
            if let seconds = asked.maxStale, seconds < .max {
                check((0...FieldSyntax.greatestDeltaSeconds).contains(seconds), text)
            }
            // Nobody is taken to have said what is not there.
            let lower = text.lowercased()
            check(!asked.noStore || lower.contains("no-store"), text)
            check(!asked.onlyIfCached || lower.contains("only-if-cached"), text)
            check(asked.maxAge == nil || lower.contains("max-age"), text)
        }
    }

    @Test func structuredFields() {
        let seeds = [
            "a;q=1, (1 \"b\";x -2.5);y, :AQ==:;z=?0", "max-age=60, b;x=2, c=(1 2), d=@12, a=?0",
            "%\"a %c3%bc %f0%9f%98%80\", \"a\\\"\\\\\"", "999999999999999, -999999999999.999, *a/b:c",
        ]
        var mutator = Mutator(seeds: seeds)
        var (parsed, isBounded) = (0, true)
        func look(_ value: StructuredField.BareItem) {
            switch value {
            case .integer(let number), .decimal(let number), .date(let number):
                isBounded = isBounded && abs(number) <= StructuredField.greatestInteger
            case .string(let text):
                isBounded = isBounded && text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
                // Written as one it is read as it was.
                let written = StructuredField.item(StructuredField.text(ofTokenOrString: text))?.value
                isBounded = isBounded && (written == value || written == .token(text))
            case .token, .bytes, .boolean, .displayString: break
            }
        }
        func look(_ members: [StructuredField.Member]) {
            for member in members {
                switch member {
                case .item(let item): ([item.value] + item.parameters.list.map(\.value)).forEach(look)
                case .innerList(let items, _): look(items.map { .item($0) })
                }
            }
        }
        for _ in 0..<Self.iterations {
            let text = mutator.next()
            let list = StructuredField.list(text)
            look(list ?? [])
            look(StructuredField.dictionary(text)?.list.map(\.value) ?? [])
            if let item = StructuredField.item(text) { check(list == [.item(item)], text) }
            parsed += list == nil ? 0 : 1
            check(isBounded, text)
            isBounded = true
        }
        #expect(parsed > Self.iterations / 100)
    }

    @Test func lists() {
        var mutator = Mutator(seeds: ["a, \"b, c\", d", "\"\\", "a=\"\\\"\",,", "*, Foo", "en;q=0.5, de"])
        for _ in 0..<Self.iterations {
            let text = mutator.next()
            let members = FieldSyntax.members(of: text)
            check(members.reduce(0) { $0 + $1.utf8.count } <= text.utf8.count)
            check(members.allSatisfy { !$0.isEmpty })
            for member in members {
                let plain = FieldSyntax.unquoting(member.utf8)
                check(plain.map { $0.utf8.count <= member.utf8.count } ?? true, text)
                // A member is a member of its own again.
                check(FieldSyntax.members(of: String(member)) == [member], text)
            }
            let key = VaryKey(text, request: ["Foo": text])
            check(key.matchesNothing || key.matches(["foo": text]))
        }
    }

    @Test func tagsAndRanges() {
        let seeds = [
            "\"a\", W/\"b\", c", "*", "bytes=0-1", "bytes=-5,3-", "bytes 4-9/10", "bytes */10",
            "bytes=9223372036854775807-9223372036854775808",
        ]
        var mutator = Mutator(seeds: seeds)
        for iteration in 0..<Self.iterations {
            let text = mutator.next()
            for tag in EntityTagCondition(text).tags { check(EntityTag(tag.text) == tag, text) }
            if let range = ContentRange(text) {
                check(range.range.lowerBound >= 0 && range.range.upperBound <= range.total && !range.range.isEmpty)
            }
            let total = [0, 1, 10, Int.max][iteration % 4]
            if case .single(let range) = RangeRequest(text), let bytes = range.resolved(total: total) {
                check(bytes.lowerBound >= 0 && bytes.upperBound <= total && !bytes.isEmpty, text)
            }
        }
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
