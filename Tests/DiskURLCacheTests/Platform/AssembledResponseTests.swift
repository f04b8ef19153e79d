#if canImport(FoundationNetworking)
    import Foundation
    import FoundationNetworking
    import Testing

    @testable import DiskURLCache

    /// Responses that are assembled are the same as those that Foundation's initialiser makes.
    @Suite struct AssembledResponseTests {
        private static let names = [
            "Content-Type", "content-type", "Content-Length", "CONTENT-LENGTH", "Content-Disposition", "Etag", "ETag",
            "Date",
            "Age", "Cache-Status", "X-Id", "x-lower", "X-", "x", "X", "WWW-Authenticate", "Www-Authenticate", "P3p",
            "Content-Md5",
            "Content-MD5", "Accept--Ranges", "Accept-", "-Vary", "Vary", "server", "", "Ünicode", "X-Ü", "A B", "Ärger",
        ]
        private static let values = [
            "", "12", "-1", " 7", "99999999999999999999", "text/html", "Text/HTML", "text/html; charset=UTF-8",
            "text/html;charset=utf-8", "text/html ; charset=x", "text/html; Charset=x", "text/html; charset=\"utf-8\"",
            "text/html; charset=a; charset=b", "text/html; q=1; charset=b", "text/html; charset=", "text/html;",
            ";charset=x",
            "text/html; charset=a b", "text/html; charset = a", "text\\/html", "täxt/html",
            "attachment; filename=\"a/b.txt\"",
            "attachment; filename=c.txt", "max-age=60", "text/html; charset=utf-8 ", "text/html;\tcharset=x",
        ]

        @Test func sameAsFoundations() throws {
            let url = try #require(URL(string: "https://user:secret@example.com/a/b.html;c?d=e#f"))
            let places = try #require(AssembledResponse.places)
            var random = TestRandom(7)
            var assembled = 0
            for round in 0..<20_000 {
                var fields: [String: String] = [:]
                for _ in 0..<Int.random(in: 0..<5, using: &random) {
                    // Every second round from the front of the lists, where most are plain.
                    let name = Self.names[Int.random(in: 0..<(round % 2 == 0 ? Self.names.count : 11), using: &random)]
                    fields[name] = Self.values[Int.random(in: 0..<Self.values.count, using: &random)]
                }
                guard let response = places.response(url: url, status: 200 + round % 300, fields: fields) else {
                    continue
                }
                assembled += 1
                let expected = try #require(
                    HTTPURLResponse(
                        url: url, statusCode: 200 + round % 300, httpVersion: "HTTP/1.1", headerFields: fields))
                #expect(response.isEqual(expected))
                #expect(response.url == expected.url)
                #expect(response.statusCode == expected.statusCode)
                #expect(response.allHeaderFields as? [String: String] == expected.allHeaderFields as? [String: String])
                #expect(response.mimeType == expected.mimeType, "\(fields)")
                #expect(response.textEncodingName == expected.textEncodingName, "\(fields)")
                #expect(response.expectedContentLength == expected.expectedContentLength, "\(fields)")
                #expect(response.suggestedFilename == expected.suggestedFilename, "\(fields)")
                for name in Self.names {
                    #expect(
                        response.value(forHTTPHeaderField: name) == expected.value(forHTTPHeaderField: name))
                }
            }
            // Neither all nor none.
            #expect(assembled > 4_000 && assembled < 19_000)
        }

        /// What most servers send is not left to the initialiser.
        @Test func usualFieldsArePlain() throws {
            let fields = [
                "Content-Type": "application/json; charset=utf-8", "Content-Length": "4096", "Etag": "\"abc\"",
                "Date": "Sat, 21 Nov 2026 20:00:00 GMT", "Cache-Control": "public, max-age=3600",
                "Server": "nginx/1.22.1",
                "Vary": "Accept-Encoding", "X-Request-ID": "1", "Access-Control-Allow-Origin": "*", "Age": "3",
                "Cache-Status": "DiskURLCache; hit; ttl=3",
            ]
            let url = try #require(URL(string: "https://example.com/"))
            #expect(AssembledResponse.places?.response(url: url, status: 200, fields: fields) != nil)
        }
    }
#endif
