import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What `getCachedResponse(for:)` found: for a caller the response that is stored, for our own protocol, to which
/// Foundation hands it on, all that was worked out on the way and need not be done again.
///
/// `@unchecked Sendable`: as its superclass; what it adds is constant.
final class LookupResult: CachedURLResponse, @unchecked Sendable {
    struct Findings {
        let link: SessionLink
        /// As it will be sent.
        let request: URLRequest
        let facts: RequestFacts
        let key: RequestKey
        /// The one that was read is at hand.
        let variants: [StoredVariant]
    }

    /// Nil in one that was copied or decoded.
    let findings: Findings?

    #if canImport(FoundationNetworking)
        private let stored: CachedURLResponse
        /// Where it is not in memory.
        private let body: OpenBody?

        init(_ stored: CachedURLResponse, body: OpenBody? = nil, findings: Findings) {
            self.findings = findings
            self.stored = stored
            self.body = body
            super.init(
                response: LazyCachedURLResponse.placeholder, data: stored.data, userInfo: stored.userInfo,
                storagePolicy: stored.storagePolicy)
        }

        /// Perhaps built now: our own protocol has no use for it.
        override var response: URLResponse { stored.response }
        /// Perhaps read now, each time: our own protocol has no use for it either. Empty where it cannot be read any more.
        override var data: Data { body.map { $0.contents ?? Data() } ?? super.data }
    #else
        init(_ response: CachedURLResponse, findings: Findings) {
            self.findings = findings
            super.init(
                response: response.response, data: response.data, userInfo: response.userInfo,
                storagePolicy: response.storagePolicy)
        }

        required init?(coder: NSCoder) {
            findings = nil
            super.init(coder: coder)
        }
    #endif
}
