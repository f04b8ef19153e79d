import Foundation

extension DiskURLCache {
    /// An answer and its source.
    public struct Answer: Sendable {
        /// The body, decoded.
        public let data: Data
        /// The head: status and header fields.
        public let response: HTTPURLResponse
        /// Whether the response is stale and was used on purpose.
        public var isStale: Bool { load.isStale }
        /// A summary of the load: ``Report/outcome`` names the source of the answer, and the reason,
        /// ``Report/age`` how old it is.
        public var report: Report { load.publicReport(cacheName: cacheName) }

        private let load: LoadReport
        private let cacheName: String?

        /// - Throws: if the configuration wants the digests compared, and one contradicts the body.
        init(_ head: DeliveredHead, _ data: Data, _ load: LoadReport, isDecoded: Bool, in cache: CacheCore) throws {
            guard let response = head.response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
            if var digests = BodyDigests(of: head, to: load.request, isDecoded: isDecoded, comparedBy: cache) {
                digests.update(data)
                if let field = digests.contradiction { throw Reason.wrongDigest(in: field) }
            }
            self.data = data
            self.response = response
            self.load = load
            cacheName = cache.cacheStatusName
        }
    }
}

extension BodyDigests {
    /// Those that are compared with the body that a caller gets, by the configuration.
    init?(of head: DeliveredHead, to request: DiskURLCache.Request, isDecoded: Bool, comparedBy cache: CacheCore) {
        guard cache.configuration.wrongDigest == .failed else { return nil }
        self.init(head.fields, status: head.status, method: request.method, isDecoded: isDecoded)
    }
}

extension DiskURLCache.Answer: PrintedByDescription {
    /// The request, the status, and the source of the answer, in one line. Header fields and body are not printed.
    package var printedText: String { report.description }
}
