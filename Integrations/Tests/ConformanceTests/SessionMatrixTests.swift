import AsyncHTTPClient
import CachingHTTPClient
import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Each load by a session over `HTTPClient` says the same as one by a session of Foundation without a cache, or is in
/// `MatrixException.overClient`.
@Suite(.timeLimit(.minutes(20))) struct SessionMatrixTests {
    @Test func eachLoadSaysWhatOneByFoundationSays() async throws {
        var client = HTTPClient.Configuration()
        client.httpVersion = .http1Only
        let settings = client
        try await MatrixComparison(
            makeSession: { try $0.makeSession(configuration: $1, delegate: $2, client: settings) },
            ways: MatrixWay.ofSessions, exceptions: MatrixException.overClient
        ).run()
    }
}

extension MatrixException {
    /// What may differ, and why. "On a server" has the list for users.
    static let overClient: [MatrixException] =
        ofEveryNetwork + [
            MatrixException("an error has the text of the client") { $0.name == "error description" },
            MatrixException("a body that is cut is .networkConnectionLost, as Apple's; Foundation on Linux: .unknown") {
                ["early end", "length too long", "chunked, cut"].contains($0.shape) && $0.name == "error"
                    && $0.got == "\(NSURLErrorDomain) -1005"
            },
            MatrixException("what is no HTTP is .badServerResponse; Foundation on Linux: .unsupportedURL") {
                $0.shape == "not HTTP" && $0.name == "error" && $0.got == "\(NSURLErrorDomain) -1011"
            },
            MatrixException("a damaged body is an error; Foundation on Linux delivers its beginning as the whole") {
                $0.shape == "damaged gzip"
                    && ($0.got == nil || $0.got == "here/a" || $0.got == "\(NSURLErrorDomain) -1015"
                        || $0.name == "events")
            },
            MatrixException("an unknown content coding is .cannotDecodeContentData; Foundation on Linux: .unknown") {
                $0.shape == "unknown coding"
                    && ($0.expected == nil || $0.name.hasPrefix("error") || $0.name == "events")
            },
            MatrixException("a status line without a reason phrase is HTTP; Foundation on Linux fails") {
                $0.shape == "no reason phrase"
                    && ($0.expected == nil || $0.name.hasPrefix("error") || $0.name == "events")
            },
            MatrixException("a redirect without a target has a body and is told; in Foundation on Linux it has none") {
                ($0.shape.hasSuffix("to: empty") || $0.shape.hasSuffix("to: none"))
                    && ($0.name == "events" || $0.isGot(["body": "moved"]))
            },
            MatrixException("a delegate hears of no 1xx") {
                ["103 before", "100 before"].contains($0.shape) && $0.name == "events"
                    && $0.expected == "response \($0.shape.prefix(3)), \($0.got ?? "")"
            },
            MatrixException("a delegate does not hear how much of a request's body was sent") {
                $0.shape.hasPrefix("POST") && $0.name == "events" && $0.expected == "sent 4, \($0.got ?? "")"
            },
            MatrixException("two spellings of a name are one field; Foundation on Linux keeps them apart") {
                $0.shape == "a field twice" && $0.isGot(["field x-a": "X-A: 1, 2, 3 "])
            },
            MatrixException("a redirect's cookie is sent in each way; Foundation on Linux sends none with a delegate") {
                $0.shape == "a redirect with a cookie" && $0.way == .delegate
                    && $0.isGot([
                        "body": "a cookie", "type": "none, none, 8", "field content-length": "Content-Length: 8 ",
                    ])
            },
            MatrixException("a completion handler gets a whole body or an error; a task's delegate hears of no part") {
                $0.way == .taskDelegate && $0.name == "events" && $0.got == ""
                    && ["early end", "chunked, cut", "length too long"].contains($0.shape)
            },
        ]
}
