import Testing

@testable import DiskURLCache

@Suite struct HeaderFieldsTests {
    @Test func namesCompareWithoutRegardToCase() {
        let fields: HeaderFields = ["ETag": "\"a\"", "etag": "\"b\"", "Age": "1"]
        #expect(fields["eTAG"] == "\"a\", \"b\"")
        #expect(fields.values(of: "Etag") == ["\"a\"", "\"b\""])
        #expect(fields["Expires"] == nil)
    }

    /// Foundation keeps fields in a dictionary, whose order differs from one to the next.
    @Test func orderAndCaseOfNamesDoNotCount() {
        let pairs = (0..<20).map { ("Name-\($0)", "\($0)") }
        let list = HeaderFields(pairs.map { HeaderFields.Field(name: $0.0.lowercased(), value: $0.1) })
        for capacity in [20, 100, 1000] {
            var dictionary: [String: String] = [:]
            dictionary.reserveCapacity(capacity)
            for (name, value) in pairs { dictionary[name] = value }
            #expect(HeaderFields(dictionary: dictionary) == list)
        }
    }

    @Test func valuesAndTheirNumberCount() {
        let fields: HeaderFields = ["A": "1", "B": "2"]
        #expect(fields != ["A": "2", "B": "1"])
        #expect(fields != ["A": "1"])
        #expect(fields != ["A": "1", "B": "2", "b": "2"])
        #expect(["A": "1", "A": "1", "B": "2"] as HeaderFields != ["A": "1", "B": "2", "B": "2"])
        #expect(["A": "x"] as HeaderFields != ["A": "X"])
    }

    @Test func charactersThatDifferByTheCaseBitAreNotTheSame() {
        #expect(!"@".equalsIgnoringASCIICase("`"))
        #expect(!"a[".equalsIgnoringASCIICase("a{"))
        #expect("aZ".equalsIgnoringASCIICase("Az"))
    }

    /// The lengths of the names are compared first.
    @Test func aNameOfAnyLengthIsFound() {
        let names = (1...200).map { String(repeating: "n", count: $0) }
        for name in names {
            #expect((["a-long-name": "0", name: "1"] as HeaderFields)[name.uppercased()] == "1")
            #expect((["a-long-name": "0", name: "1"] as HeaderFields)[name + "n"] == nil)
        }
        var fields = HeaderFields()
        for name in names { fields.append(name, "\(name.count)") }
        fields.remove(names[9])
        for name in names { #expect(fields[name] == (name == names[9] ? nil : "\(name.count)")) }
    }

    @Test func namesInASetCompareWithoutRegardToCase() {
        let names: Set<FieldName> = ["ETag", "X-A-Name-Of-More-Than-Sixteen-Bytes"]
        #expect(names.contains("etag") && names.contains("x-a-nAME-of-more-than-sixteen-bytes"))
        #expect(!names.contains("ETa'") && !Set<FieldName>(["a@"]).contains("a`"))
        #expect((["Aa": "1", "aA": "2"] as HeaderFields).dictionary == ["Aa": "1, 2"])
    }
}
