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
    static let overClient: [MatrixException] = [
    ]
}
