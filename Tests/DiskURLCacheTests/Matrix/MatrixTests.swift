import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One URL, one behaviour: each load says the same as one without a cache, or is in `MatrixException.all`. See
/// `MatrixComparison`.
@Suite(
    .fewAtATime, .timeLimit(.minutes(20)), .enabled(if: LoadingHarness.storesForSessions, "no loads through sessions"))
struct MatrixTests {
    @Test func eachLoadSaysWhatOneWithoutACacheSays() async throws {
        try await MatrixComparison(
            makeSession: { $0.makeSession(configuration: $1, delegate: $2) }, ways: MatrixWay.allCases,
            exceptions: MatrixException.all
        ).run()
    }
}

extension MatrixException {
    /// What may differ, and why.
    static let all: [MatrixException] = [
        MatrixException("an answer from the cache has an Age (RFC 9111 §4)") {
            $0.name == "field age" && $0.expected == nil && $0.got?.hasPrefix("Age: ") == true
        },
        MatrixException("fields of one connection are not stored (RFC 9111 §3.1)") {
            ["field connection", "field transfer-encoding"].contains($0.name) && $0.got == nil && $0.load != "first"
        },
        MatrixException("a stored Set-Cookie is not replayed") {
            $0.name == "field set-cookie" && $0.got == nil && $0.load != "first"
        },
        MatrixException("what came without a Date is stored with one (RFC 9110 §6.6.1)") {
            $0.name == "field date" && $0.expected == nil && $0.load != "first"
        },
        MatrixException(
            "Foundation on Linux keeps two spellings of a name apart, in no order; the store has them as one field"
        ) {
            $0.shape == "a field twice" && $0.name == "field x-a" && $0.load != "first"
                && $0.got?.filter(\.isNumber).sorted() == ["1", "2", "3"]
        },
        MatrixException("Foundation on Linux counts the bytes of its own protocol class only") {
            $0.name == "counts" && $0.got == "0 of 0"
        },
        MatrixException("Foundation on Linux tells a delegate of 1xx as of answers") {
            ["103 before", "100 before"].contains($0.shape) && $0.name == "events"
                && $0.expected == "response \($0.shape.prefix(3)), \($0.got ?? "")"
        },
        MatrixException("Foundation on Linux tells no delegate of a redirect without a target") {
            ($0.shape.hasSuffix("to: empty") || $0.shape.hasSuffix("to: none")) && $0.name == "events"
                && $0.got == "response \($0.shape.prefix(3))" + ($0.expected == "end" ? ", end" : "")
        },
        MatrixException("a stored whole answers a range (RFC 9110 §14.2)") {
            $0.shape == "200 to a range" && $0.load != "first"
                && $0.isGot([
                    "status": "206", "body": "dy o", "type": "none, none, 4",
                    "field content-range": "Content-Range: bytes 2-5/9 ", "field content-length": "Content-Length: 4 ",
                    "events": $0.expected?.replacingOccurrences(of: "200", with: "206") ?? "",
                ])
        },
        MatrixException("credentials are not sent to another origin (RFC 9110 §15.4)") {
            $0.shape == "a redirect with credentials"
                && $0.isGot(["body": "none", "type": "none, none, 4", "field content-length": "Content-Length: 4 "])
        },
        MatrixException(
            "with a delegate Foundation on Linux sends no cookie that a redirect sets; the cache does in each way"
        ) {
            $0.shape == "a redirect with a cookie" && $0.way == .delegate
                && $0.isGot(["body": "a cookie", "type": "none, none, 8", "field content-length": "Content-Length: 8 "])
        },
        MatrixException("the URL that failed is told, not the one that led to it") {
            $0.shape == "a redirect to a failure" && $0.isGot(["error url": "here/t", "error url string": "here/t"])
        },
        MatrixException(
            "a completion handler gets a whole body or an error; a task's delegate hears of no part before an error"
        ) {
            $0.way == .taskDelegate && $0.name == "events" && $0.got == ""
                && ["early end", "chunked, cut", "length too long", "unknown coding"].contains($0.shape)
        },
    ]
}
