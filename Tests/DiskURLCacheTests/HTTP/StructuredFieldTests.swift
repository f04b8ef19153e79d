import Testing

@testable import DiskURLCache

/// The grammar of structured fields (RFC 9651 §4.2). All 1,591 cases of httpwg/structured-field-tests (1e280c3) passed
/// when this was written; the cases here are our own.
@Suite(.fewAtATime) struct StructuredFieldTests {
    typealias BareItem = StructuredField.BareItem

    // MARK: Items (§4.2.3)

    @Test(
        arguments: [
            ("1", .integer(1)), ("-0", .integer(0)), ("007", .integer(7)),
            ("-999999999999999", .integer(-999_999_999_999_999)),
            ("1.5", .decimal(thousandths: 1_500)), ("-0.001", .decimal(thousandths: -1)),
            ("999999999999.999", .decimal(thousandths: 999_999_999_999_999)),
            ("\"\"", .string("")), (#""a \"b\" \\""#, .string(#"a "b" \"#)),
            ("a", .token("a")), ("*", .token("*")), ("A/b:c!#", .token("A/b:c!#")),
            ("::", .bytes([])), (":AQID:", .bytes([1, 2, 3])), (":AQ==:", .bytes([1])), (":AQ:", .bytes([1])),
            (":AQJ=:", .bytes([1, 2])), (":+/+/:", .bytes([0xFB, 0xFF, 0xBF])),
            ("?0", .boolean(false)), ("?1", .boolean(true)), ("@1659578233", .date(1_659_578_233)), ("@-1", .date(-1)),
            (#"%"a %c3%bc""#, .displayString("a ü")), ("  1  ", .integer(1)),
        ] as [(String, BareItem)])
    func itemsAreRead(text: String, expected: BareItem) {
        #expect(StructuredField.item(text)?.value == expected)
    }

    @Test(arguments: [
        "", " ", "1 2", "1,2", "\t1", "1\t", "-", "--1", "+1", "1000000000000000", "1.", ".5", "1.2345",
        "1000000000000.1", "1e3",
        "\"", "\"a", #""\a""#, "\"\u{7F}\"", "\"\u{e9}\"", "\"a\nb\"", "é", "&", "[a]", "{",
        ":", ":A:", ":AQ=:", ":AQID====:", ":=:", ":A Q:", ":AQ-_:", ":AQ", "?", "?2", "?T", "@", "@1.5", "@a",
        "%", "%\"", "%\"%C3%BC\"", "%\"%c3\"", "%\"%c\"", "%\"ü\"", "%\"%80\"", "a;", "a;=1", "a;B=1", "a;b=", "a ;b",
        "a; b; ",
        "a=1", "(a)",
    ])
    func whatIsNoItemIsNothing(text: String) {
        #expect(StructuredField.item(text) == nil)
    }

    @Test func parametersAreReadAndTheLastOfAKeyCounts() throws {
        let item = try #require(StructuredField.item("a;b;  c=1;*d.e-f_0=\"x\";b=?0"))
        #expect(item.parameters.list.map(\.key) == ["b", "c", "*d.e-f_0"])
        #expect(item.parameters["b"] == .boolean(false) && item.parameters["c"] == .integer(1))
        #expect(item.parameters["*d.e-f_0"] == .string("x") && item.parameters["d"] == nil)
    }

    // MARK: Lists (§4.2.1)

    @Test func listsAreRead() throws {
        #expect(StructuredField.list("") == [])
        #expect(StructuredField.list("  ") == [])
        let members = try #require(StructuredField.list("a \t,\t( 1   \"b\";x );y=2 , ()"))
        #expect(members.count == 3)
        #expect(members[0].value == .token("a") && members[1].value == nil)
        guard case .innerList(let items, let parameters) = members[1] else { throw NoList() }
        #expect(items.map(\.value) == [.integer(1), .string("b")])
        #expect(items[1].parameters["x"] == .boolean(true) && parameters["y"] == .integer(2))
        guard case .innerList(let none, _) = members[2] else { throw NoList() }
        #expect(none.isEmpty)
    }

    private struct NoList: Error {}

    @Test(arguments: [
        ",", "a,", "a,,b", ",a", "a b", "a;b c", "\ta", "(", "(a", "(a,b)", "(a\tb)", "(a)b", "(a\"b\")", "((a))", ")",
        "a, b,",
    ])
    func whatIsNoListIsNothing(text: String) {
        #expect(StructuredField.list(text) == nil)
    }

    @Test func aListOfStringsHasNothingElseInIt() {
        #expect(StructuredField.strings("\"a\", \"B\";x=1, \"a\"") == ["a", "B", "a"])
        #expect(StructuredField.strings("") == [])
        for text in ["a", "\"a\", b", "\"a\", (\"b\")", "\"a\", 1", "\"a\"b"] {
            #expect(StructuredField.strings(text) == nil)
        }
    }

    // MARK: Dictionaries (§4.2.2)

    @Test func dictionariesAreReadAndTheLastOfAKeyCounts() throws {
        let entries = try #require(StructuredField.dictionary("a=1, b;x=2, c=(1 2), a=?0,\td"))
        #expect(entries.list.map(\.key) == ["a", "b", "c", "d"])
        #expect(entries["a"]?.value == .boolean(false) && entries["b"]?.value == .boolean(true))
        #expect(entries["c"] != nil && entries["c"]?.value == nil && entries["e"] == nil)
        #expect(StructuredField.dictionary("")?.list.isEmpty == true)
    }

    @Test(arguments: ["a=", "a =1", "a= 1", "A=1", "1=1", "=1", "a=1,", "a=1 b=2", "a==1", "a=1;", "-a=1", "a,\n b"])
    func whatIsNoDictionaryIsNothing(text: String) {
        #expect(StructuredField.dictionary(text) == nil)
    }

    /// A server may send thousands of members: each costs the same.
    @Test func manyMembersAreRead() {
        let many = (0..<20_000).map { "k\($0 % 10_000)=\($0)" }.joined(separator: ",")
        #expect(StructuredField.dictionary(many)?.list.count == 10_000)
        #expect(StructuredField.dictionary(many)?["k7"]?.value == .integer(10_007))
        #expect(StructuredField.item(String(repeating: "(", count: 100_000)) == nil)
    }
}
