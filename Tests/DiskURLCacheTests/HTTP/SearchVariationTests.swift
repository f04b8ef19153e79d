import Testing

@testable import DiskURLCache

/// `No-Vary-Search`: which queries are equivalent.
@Suite struct SearchVariationTests {
    private static func variation(_ value: String?) -> SearchVariation? {
        SearchVariation(value.map { ["No-Vary-Search": $0] } ?? [:])
    }

    /// Whether two queries are equivalent by a field. Nil for a field that says nothing.
    private static func areEquivalent(_ first: String?, _ second: String?, by value: String) -> Bool? {
        variation(value).map { $0.simplified(first) == $0.simplified(second) }
    }

    // MARK: Parsing

    @Test(arguments: [
        "key-order", "key-order=?1", "params=(\"a\")", "params=(\"a\" \"b\"), key-order", "except=(\"x\")", "except=()",
        "params=(), key-order", "except=(\"x\"), key-order=?0", "params=(\"a\"), unknown=1", "params=(\"a\";q=1);r",
    ])
    func validFieldsSaySomething(value: String) {
        #expect(Self.variation(value) != nil)
    }

    /// These leave the comparison byte by byte. What older drafts had (`params` without a list) is among them.
    @Test(arguments: [
        nil, "", "params=()", "key-order=?0", "key-order=\"x\"", "key-order=(\"a\")", "params", "params=?0",
        "params=?1",
        "params=\"a\"", "params=(a)", "params=(\"a\" b)", "params=(1)", "params, except=(\"x\")",
        "params=?1, except=(\"x\")", "params=(\"a\"), except=(\"x\")", "params=(), except=()", "except=\"x\"",
        "except=(x)",
        "except=?1", "except", "unknown", "params=(\"a\"", "params=(\"a\"),", "key-order,, params=(\"a\")",
    ])
    func otherFieldsSayNothing(value: String?) {
        #expect(Self.variation(value) == nil)
    }

    @Test func equalMeaningsAreEqual() {
        #expect(Self.variation("params=(\"a\" \"b\")") == Self.variation("params=(\"b\" \"a\" \"a\"), key-order=?0"))
        #expect(Self.variation("params=(\"a b\")") == Self.variation("params=(\"a+b\")"))
        #expect(Self.variation("params=(\"a\")") != Self.variation("except=(\"a\")"))
    }

    // MARK: Comparing

    @Test(
        arguments: [
            ("params=(\"a\")", "a=1&b=2", "b=2", true), ("params=(\"a\")", "a=1&b=2&a=3", "b=2", true),
            ("params=(\"a\")", "a", nil, true), ("params=(\"a\")", "b=2", "b=3", false),
            ("params=(\"a\")", "A=1", nil, false), ("params=(\"a\")", "b=1&c=2", "c=2&b=1", false),
            ("params=(\"a\"), key-order", "b=1&c=2", "c=2&a&b=1", true),
            ("except=(\"x\")", "x=1&y=2", "z&x=1", true), ("except=(\"x\")", "x=1", "x=2", false),
            ("except=(\"x\")", "x=1&x=2", "x=2&x=1", false), ("except=()", "x=1&y=2", nil, true),
            ("key-order", "a=1&b=2", "b=2&a=1", true), ("key-order", "a=1&a=2", "a=2&a=1", false),
            ("key-order", "a=1&b=2", "b=2", false), ("key-order", "b=1&a=1&b=2", "a=1&b=1&b=2", true),
        ] as [(String, String?, String?, Bool)])
    func queriesAreComparedByTheField(value: String, first: String?, second: String?, expected: Bool) {
        #expect(Self.areEquivalent(first, second, by: value) == expected)
        #expect(Self.areEquivalent(second, first, by: value) == expected)
    }

    /// As the draft's table of examples has them, for any field that says something.
    @Test(
        arguments: [
            (nil, ""), ("a=x", "%61=%78"), ("a=é", "a=%C3%A9"), ("a=%f6", "a=%ef%bf%bd"), ("a=x&&&&", "a=x"),
            ("a=", "a"),
            ("a=%20", "a= &"), ("a=+", "a= &"), ("a=%2", "a=%252"), ("a=%zz", "a=%25zz"), ("a=b=c", "a=b%3Dc"),
        ] as [(String?, String)])
    func spellingsMakeNoDifference(first: String?, second: String) {
        for value in ["key-order", "params=(\"q\")", "except=(\"a\")"] {
            #expect(Self.areEquivalent(first, second, by: value) == true)
        }
    }

    @Test func namesOfTheFieldAreDecodedAsThoseOfTheQuery() {
        let value = "params=(\"%C3%A9+%E6%B0%97\")"
        for query in ["é 気=1", "é+気=2", "%C3%A9%20気=3", "%C3%A9+%E6%B0%97=4"] {
            #expect(Self.areEquivalent(query, nil, by: value) == true)
        }
        #expect(Self.areEquivalent("é=1", nil, by: value) == false)
    }

    /// Names are compared by their code points: the two spellings of é are two names.
    @Test func equivalentSpellingsOfUnicodeAreDifferentNames() {
        let (composed, decomposed) = ("%C3%A9", "e%CC%81")
        #expect(Self.areEquivalent("\(composed)=1", nil, by: "params=(\"\(composed)\")") == true)
        #expect(Self.areEquivalent("\(decomposed)=1", nil, by: "params=(\"\(composed)\")") == false)
        #expect(Self.areEquivalent("\(decomposed)=1", nil, by: "except=(\"\(composed)\")") == true)
        #expect(
            Self.areEquivalent(
                "\(composed)=1&\(decomposed)=2", "\(decomposed)=2&\(composed)=1", by: "key-order") == true)
        #expect(
            Self.variation("params=(\"\(composed)\")") != Self.variation("params=(\"\(decomposed)\")"))
        #expect(
            Self.variation("params=(\"\(composed)\" \"\(decomposed)\")") != Self.variation("params=(\"\(composed)\")"))
    }

    /// Two different queries never become equal by the way in which their parts are joined.
    @Test(arguments: [("a=1%3D2", "a=1", "2"), ("a%261:b=c", "a", "1:b=c"), ("a=%26b%3D", "a", "b=")])
    func partsCannotImitateEachOther(query: String, first: String, second: String) {
        #expect(Self.areEquivalent(query, "\(first)&\(second)", by: "key-order") == false)
    }
}
