import Foundation
import Testing

@testable import DiskURLCache

@Suite struct EntityTagTests {
    @Test(arguments: [
        ("\"abc\"", "\"abc\"", false), ("W/\"abc\"", "W/\"abc\"", true), ("W/\"\"", "W/\"\"", true),
        (" \"a,b\" ", "\"a,b\"", false),
        ("\"a\\\"", "\"a\\\"", false), ("abc", "abc", true), ("\"\"", "\"\"", false),
        ("\"abcdefü\"", "\"abcdefü\"", false), ("\"!\"", "\"!\"", false),
    ])
    func tagIsRead(_ value: String, _ text: String, _ isWeak: Bool) {
        #expect(EntityTag(value)?.text == text)
        #expect(EntityTag(value)?.isWeak == isWeak)
    }

    @Test(arguments: [
        "", " ", "\"abc", "a b", "\"a\", \"b\"", "a,b", "\"a\"b", "W/\"a", "w/\"a\"", "\"a\u{7f}\"", "\"a b\"",
    ])
    func anythingElseIsNoTag(_ value: String) {
        #expect(EntityTag(value) == nil)
    }

    /// The table of RFC 9110 §8.8.3.2.
    @Test(arguments: [
        ("W/\"1\"", "W/\"1\"", false, true), ("W/\"1\"", "W/\"2\"", false, false),
        ("W/\"1\"", "\"1\"", false, true), ("\"1\"", "\"1\"", true, true),
    ])
    func comparison(_ left: String, _ right: String, _ strong: Bool, _ weak: Bool) throws {
        let left = try #require(EntityTag(left))
        let right = try #require(EntityTag(right))
        #expect(left.stronglyMatches(right) == strong)
        #expect(left.weaklyMatches(right) == weak)
    }

    @Test func tagWithoutQuotesIsNeverStrong() throws {
        let tag = try #require(EntityTag("abc"))
        #expect(!tag.stronglyMatches(tag))
        #expect(tag.weaklyMatches(tag))
    }

    @Test func tagsOfOtherBytesAreOthersWhateverUnicodeSays() throws {
        let composed = try #require(EntityTag("\"\u{E9}\""))
        let decomposed = try #require(EntityTag("\"e\u{301}\""))
        #expect(!composed.stronglyMatches(decomposed) && !composed.weaklyMatches(decomposed))
    }

    @Test func listOfTagsIsReadTagByTag() {
        let condition = EntityTagCondition("\"a,b\" , W/\"c\",,d, \"e\"")
        #expect(condition.tags.map(\.text) == ["\"a,b\"", "W/\"c\"", "d", "\"e\""])
        #expect(EntityTagCondition(" * ") == .any)
        #expect(EntityTagCondition("\"a\", \"open").tags.map(\.text) == ["\"a\""])
        #expect(!EntityTagCondition("\"a\"").matches(nil))
        #expect(EntityTagCondition("*").matches(nil))
    }

    /// Two spellings of é are equal texts for Swift, and different ones for an origin.
    @Test func textsOfTheNetworkAreComparedByBytes() throws {
        let (one, two) = ("caf\u{E9}", "cafe\u{301}")
        #expect(one == two && !one.hasSameBytes(as: two))
        #expect(EntityTag("\"\(one)\"") != EntityTag("\"\(two)\""))
        #expect(HeaderFields([.init(name: "A", value: one)]) != HeaderFields([.init(name: "A", value: two)]))
        // Both tags are offered.
        var cache = PureCache()
        for (language, tag) in [("a", one), ("b", two)] {
            _ = cache.load(["L": language], answer: ["Vary": "L", "ETag": "\"\(tag)\"", "Cache-Control": "max-age=1"])
        }
        cache.now += 5
        guard case .revalidate(let asked) = cache.load(["L": "c"]).decision else {
            Issue.record("no validation")
            return
        }
        #expect(EntityTagCondition(asked.fields["If-None-Match"] ?? "").tags.count == 2)
        // Values that Vary compares, through the list of values whose digests are known.
        for name in ["Accept", "X-A"] {
            let key = VaryKey(name, request: [name: one])
            #expect(key.matches([name: one]) && !key.matches([name: two]))
            #expect(!key.hasValues([one], in: [name: two]) && key.hasValues([one], in: [name: one]))
            #expect(!key.hasValues([nil], in: [name: two]) && !key.hasValues([one], in: [:]))
        }
        // The answer to a HEAD whose tag is spelled differently describes a different response.
        cache = PureCache()
        _ = cache.load(answer: ["ETag": "\"\(one)\"", "Cache-Control": "max-age=1"])
        cache.now += 5
        _ = cache.load(method: "HEAD", answer: ["ETag": "\"\(two)\"", "Cache-Control": "max-age=99"], body: "")
        #expect(cache.entries.isEmpty)
    }
}
