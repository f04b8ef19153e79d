import DiskURLCache
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One URL, one behaviour: each load says the same as one without a cache, or is in `MatrixException.all`. See
/// `MatrixComparison`.
@Suite(
    .fewAtATime, .enabled(if: LoadingHarness.storesForSessions, "no loads through sessions"))
struct MatrixTests {
    @Test func eachLoadSaysWhatOneWithoutACacheSays() async throws {
        try await MatrixComparison(
            makeSession: { $0.makeSession(configuration: $1, delegate: $2) }, ways: MatrixWay.allCases,
            exceptions: MatrixException.all, hasNewSessionsInEachWay: TestLength.isLong
        ).run()
    }
}

extension MatrixException {
    /// What may differ, and why.
    static let all: [MatrixException] =
        ofEveryNetwork + [
            MatrixException(
                "Foundation on Linux keeps two spellings of a name apart, in no order; the store has them as one field"
            ) {
                $0.shape == "a field twice" && $0.name == "field x-a" && $0.load != "first"
                    && $0.got?.filter(\.isNumber).sorted() == ["1", "2", "3"]
            },
            MatrixException("Foundation on Linux tells a delegate of 1xx as of answers") {
                ["103 before", "100 before"].contains($0.shape) && $0.name == "events"
                    && $0.expected == "response \($0.shape.prefix(3)), \($0.got ?? "")"
            },
            MatrixException("Foundation on Linux tells no delegate of a redirect without a target") {
                ($0.shape.hasSuffix("to: empty") || $0.shape.hasSuffix("to: none")) && $0.name == "events"
                    && $0.got == "response \($0.shape.prefix(3))" + ($0.expected == "end" ? ", end" : "")
            },
            MatrixException(
                "with a delegate Foundation on Linux sends no cookie that a redirect sets; the cache does in each way"
            ) {
                $0.shape == "a redirect with a cookie" && $0.way == .delegate
                    && $0.isGot([
                        "body": "a cookie", "type": "none, none, 8", "field content-length": "Content-Length: 8 ",
                    ])
            },
            MatrixException(
                "a completion handler gets a whole body or an error; a task's delegate hears of no part before an error"
            ) {
                $0.way == .taskDelegate && $0.name == "events" && $0.got == ""
                    && ["early end", "chunked, cut", "length too long", "unknown coding"].contains($0.shape)
            },
        ]
}
