import Testing

@testable import DiskURLCache

@Suite struct HeaderFieldsTests {
    @Test func namesCompareWithoutRegardToCase() {
        let fields: HeaderFields = ["ETag": "\"a\"", "etag": "\"b\"", "Age": "1"]
        #expect(fields["eTAG"] == "\"a\", \"b\"")
        #expect(fields.values(of: "Etag") == ["\"a\"", "\"b\""])
        #expect(fields["Expires"] == nil)
    }

    @Test func charactersThatDifferByTheCaseBitAreNotTheSame() {
        #expect(!"@".equalsIgnoringASCIICase("`"))
        #expect(!"a[".equalsIgnoringASCIICase("a{"))
        #expect("aZ".equalsIgnoringASCIICase("Az"))
    }
}
