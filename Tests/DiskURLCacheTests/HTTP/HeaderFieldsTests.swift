import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite struct HeaderFieldsTests {
    @Test func namesCompareWithoutRegardToCase() {
        let fields: HeaderFields = ["ETag": "\"a\"", "etag": "\"b\"", "Age": "1"]
        #expect(fields["eTAG"] == "\"a\", \"b\"")
        #expect(fields.values(of: "Etag") == ["\"a\"", "\"b\""])
        #expect(fields["Expires"] == nil)
    }

    /// A field that has one value may come twice, or joined by Foundation or a proxy.
    @Test func copiesOfAValueCountOnceAndOtherValuesNotAtAll() {
        let date = "Wed, 01 Jan 2020 00:00:00 GMT"
        for value in ["/a", "\"a, b\"", date, ""] {
            for copies in 1...4 {
                let values = Array(repeating: value, count: copies)
                #expect(HeaderFields(values.map { .init(name: "A", value: $0) }).single("a") == value)
                guard value != "" else { continue }
                #expect(HeaderFields(dictionary: ["A": values.joined(separator: ", ")]).single("a") == value)
            }
            #expect((["A": value, "a": "/b"] as HeaderFields).single("A") == nil)
        }
        #expect((["B": "1"] as HeaderFields).single("A") == nil)
        #expect(HeaderFields(dictionary: ["A": "/a, /b"]).single("A") == "/a, /b")
    }

    /// Each field that has one value is read in this way.
    @Test func fieldsOfOneValueMayComeTwice() throws {
        func twice(_ name: String, _ value: String, _ other: String? = nil) -> HeaderFields {
            [name: value, name.lowercased(): other ?? value]
        }
        let request = DiskURLCache.Request(URLRequest(url: Responses.url("/from")))
        #expect(request.following(status: 302, fields: twice("Location", "/to"))?.foundationURL == Responses.url("/to"))
        #expect(request.following(status: 302, fields: twice("Location", "/to", "/evil")) == nil)
        func stored(_ fields: HeaderFields) -> StoredResponse {
            let now = PureCache.start
            return StoredResponse(
                method: "GET", status: 206, fields: fields, requestTime: now, responseTime: now, vary: .none)
        }
        #expect(ReuseFacts(stored(twice("Retry-After", "9"))).retryAfter == 9)
        #expect(ReuseFacts(stored(twice("Retry-After", "9", "90"))).retryAfter == nil)
        #expect(stored(twice("ETag", "\"a\"")).entityTag?.text == "\"a\"")
        #expect(stored(twice("ETag", "\"a\"", "\"b\"")).entityTag == nil)
        #expect(stored(twice("Last-Modified", httpDate())).lastModified == PureCache.start)
        #expect(PartialContent.isConsistent(stored(twice("Content-Range", "bytes 0-4/9")), length: 5))
        #expect(!PartialContent.isConsistent(stored(twice("Content-Range", "bytes 0-4/9", "bytes 0-5/9")), length: 5))
        let expires = ReuseFacts(stored(twice("Expires", httpDate(60)))).statedLifetime(inSharedCache: false)
        #expect(expires?.seconds.count == 60)
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
