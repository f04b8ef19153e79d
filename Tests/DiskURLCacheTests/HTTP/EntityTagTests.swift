import Testing

@testable import DiskURLCache

@Suite struct EntityTagTests {
    @Test(arguments: [
        ("\"abc\"", "\"abc\"", false), ("W/\"abc\"", "W/\"abc\"", true), (" \"a,b\" ", "\"a,b\"", false),
        ("\"a\\\"", "\"a\\\"", false), ("abc", "abc", true), ("\"\"", "\"\"", false),
        ("\"abcdefü\"", "\"abcdefü\"", false),
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
}
