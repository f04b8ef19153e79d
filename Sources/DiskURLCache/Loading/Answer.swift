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

        init(data: Data, response: HTTPURLResponse, load: LoadReport, cacheName: String?) {
            self.data = data
            self.response = response
            self.load = load
            self.cacheName = cacheName
        }
    }
}

extension DiskURLCache.Answer: PrintedByDescription {
    /// The request, the status, and the source of the answer, in one line. Header fields and body are not printed.
    package var printedText: String { report.description }
}
