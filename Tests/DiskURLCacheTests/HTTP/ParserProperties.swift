import Foundation

@testable import DiskURLCache

/// What must hold for each input of a parser, whoever makes the inputs: `ParserFuzzTests`, by a seed, or the fuzzer of
/// `Tools/Fuzzing`, which this file is a part of, too.
struct ParserProperties: Sendable {
    /// Called with an input for which something does not hold, and the line that says so.
    let fail: @Sendable (_ input: String, _ line: Int) -> Void

    init(_ fail: @escaping @Sendable (_ input: String, _ line: Int) -> Void) { self.fail = fail }

    /// Not `#expect`, which takes too long to be evaluated millions of times.
    func check(_ condition: Bool, _ input: @autoclosure () -> String = "", line: Int = #line) {
        if !condition { fail(input(), line) }
    }

    // Each returns whether the parser took the text for a good one.

    private static let reference = Date(timeIntervalSince1970: 1_700_000_000)

    func date(_ text: String) -> Bool {
        guard let date = HTTPDate.parse(text, reference: Self.reference) else { return false }
        check(abs(date.timeIntervalSince1970) < 3e11, text)
        // Written in the one form that is sent it means the same.
        check(HTTPDate.parse(HTTPDate.format(date), reference: Self.reference) == date, text)
        return true
    }

    func cacheControl(_ text: String) -> Bool {
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
        return true
    }

    func structuredField(_ text: String) -> Bool {
        let list = StructuredField.list(text)
        look(list ?? [], text)
        look(StructuredField.dictionary(text)?.list.map(\.value) ?? [], text)
        if let item = StructuredField.item(text) { check(list == [.item(item)], text) }
        return list != nil
    }

    private func look(_ members: [StructuredField.Member], _ text: String) {
        for member in members {
            switch member {
            case .item(let item):
                for value in [item.value] + item.parameters.list.map(\.value) { look(value, text) }
            case .innerList(let items, _): look(items.map { .item($0) }, text)
            }
        }
    }

    private func look(_ value: StructuredField.BareItem, _ text: String) {
        switch value {
        case .integer(let number), .decimal(let number), .date(let number):
            check(abs(number) <= StructuredField.greatestInteger, text)
        case .string(let string):
            check(string.utf8.allSatisfy { (0x20...0x7E).contains($0) }, text)
            // Written as one it is read as it was.
            let written = StructuredField.item(StructuredField.text(ofTokenOrString: string))?.value
            check(written == value || written == .token(string), text)
        case .token, .bytes, .boolean, .displayString: break
        }
    }

    func list(_ text: String) -> Bool {
        let members = FieldSyntax.members(of: text)
        check(members.reduce(0) { $0 + $1.utf8.count } <= text.utf8.count)
        check(members.allSatisfy { !$0.isEmpty })
        for member in members {
            let plain = FieldSyntax.unquoting(member.utf8)
            check(plain.map { $0.utf8.count <= member.utf8.count } ?? true, text)
            // A member is a member of its own again.
            check(FieldSyntax.members(of: String(member)) == [member], text)
        }
        let asked = RequestFacts(method: "GET", fields: ["Foo": text], salt: nil)
        let key = VaryKey(response: ["Vary": text], request: asked)
        check(key.matchesNothing || key.matches(["foo": text]))
        return true
    }

    func tagOrRange(_ text: String) -> Bool {
        if case .tags(let tags) = EntityTagCondition(text) {
            for tag in tags { check(EntityTag(tag.text) == tag, text) }
        }
        if let range = ContentRange(text) {
            check(range.range.lowerBound >= 0 && range.range.upperBound <= range.total && !range.range.isEmpty)
        }
        for total in [0, 1, 10, Int.max] {
            if case .single(let range) = RangeRequest(text), let bytes = range.resolved(total: total) {
                check(bytes.lowerBound >= 0 && bytes.upperBound <= total && !bytes.isEmpty, text)
            }
        }
        return true
    }

    func url(_ text: String) -> Bool {
        guard let url = URLCanonicalizer.canonical(text) else { return false }
        // The short way that knows a canonical URL at sight, and the long one, agree.
        check(URLCanonicalizer.canonical(url) == url && URLCanonicalizer.parts(of: url)?.url == url, text)
        check(url.hasPrefix("http://") || url.hasPrefix("https://"), text)
        check(!url.contains("#"), text)
        let host = URLCanonicalizer.host(ofNormal: url)
        check(!host.isEmpty && !host.contains("@") && host == URLCanonicalizer.parts(of: url)?.host ?? "", text)
        return true
    }

    func json(_ text: String) -> Bool {
        guard let bytes = CanonicalJSON.text(of: Array(text.utf8)) else { return false }
        check(CanonicalJSON.text(of: bytes) == bytes, text)
        // It is no other JSON than before. Foundation's parser is stricter about some texts, and about their length.
        let options: JSONSerialization.ReadingOptions = [.fragmentsAllowed]
        if let before = try? JSONSerialization.jsonObject(with: Data(text.utf8), options: options) as? NSObject {
            let after = try? JSONSerialization.jsonObject(with: Data(bytes), options: options) as? NSObject
            check(after == before, text)
        }
        return true
    }
}
