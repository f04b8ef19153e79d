#if canImport(FoundationNetworking)
    import Foundation
    import FoundationNetworking

    /// Makes an `HTTPURLResponse` whose header fields are plain without Foundation's going through them: its initialiser
    /// takes 12 µs for eight fields, more than to read a small record from disk, of which this takes one.
    ///
    /// The object is made without fields, and what it derives from them is then put where the runtime says that it lies. A
    /// Foundation that keeps other properties, or fills them in another way, is found out by a comparison of one response
    /// made in both ways; there all are made by the initialiser.
    struct AssembledResponse {
        private let fields: StoredProperty
        private let mimeType: StoredProperty
        private let textEncodingName: StoredProperty
        private let expectedContentLength: StoredProperty

        /// Nil where this Foundation's responses cannot be assembled.
        static let places = AssembledResponse()

        private init?() {
            guard let fields = StoredProperty("_allHeaderFields", of: HTTPURLResponse.self),
                let mimeType = StoredProperty("mimeType", of: URLResponse.self),
                let textEncodingName = StoredProperty("textEncodingName", of: URLResponse.self),
                let expectedContentLength = StoredProperty("expectedContentLength", of: URLResponse.self)
            else { return nil }
            self.fields = fields
            self.mimeType = mimeType
            self.textEncodingName = textEncodingName
            self.expectedContentLength = expectedContentLength
            guard makesWhatFoundationMakes() else { return nil }
        }

        /// Nil where the fields are not plain, or there is no place for them.
        func response(url: URL, status: Int, fields dictionary: [String: String]) -> HTTPURLResponse? {
            guard let plain = PlainFields(dictionary),
                let response = HTTPURLResponse(
                    url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: nil),
                // Nobody else has the object yet.
                fields.set(dictionary, in: response),
                mimeType.set(plain.mimeType, in: response),
                textEncodingName.set(plain.textEncodingName, in: response),
                expectedContentLength.set(plain.expectedContentLength, in: response)
            else { return nil }
            return response
        }

        private func makesWhatFoundationMakes() -> Bool {
            guard let url = URL(string: "http://localhost/a/b.html?c"),
                let expected = HTTPURLResponse(
                    url: url, statusCode: 203, httpVersion: "HTTP/1.1", headerFields: Self.sample),
                let response = response(url: url, status: 203, fields: Self.sample)
            else { return false }
            return response.isEqual(expected) && response.statusCode == expected.statusCode
                && response.allHeaderFields as? [String: String] == expected.allHeaderFields as? [String: String]
                && response.mimeType == expected.mimeType && response.textEncodingName == expected.textEncodingName
                && response.expectedContentLength == expected.expectedContentLength
                && response.suggestedFilename == expected.suggestedFilename
                && response.value(forHTTPHeaderField: "x-sample") == expected.value(forHTTPHeaderField: "x-sample")
        }

        private static let sample = [
            "Content-Type": "Text/HTML; charset=UTF-8", "Content-Length": "12", "Etag": "\"1\"", "X-Sample": "value",
        ]
    }
#endif
