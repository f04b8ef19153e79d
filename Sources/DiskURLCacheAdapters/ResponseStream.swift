import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// An answer whose body is read as it arrives, piece by piece and once; see
    /// `DiskURLCache.load(_:through:variant:redirect:)`.
    ///
    /// ```swift no-check
    /// for try await piece in stream { … }
    /// ```
    ///
    /// Read the body to its end, otherwise the answer may not be stored: without a reader, the load is cancelled. The
    /// transfer pauses while more than 1 MB is unread; loads that wait for the same answer then send their own
    /// requests.
    public struct ResponseStream: AsyncSequence, AsyncIteratorProtocol, Sendable {
        /// Status and header fields; those from the network as the transport gave them.
        public var head: Head {
            Head(ResponseHead(status: delivered.status, fields: delivered.fields))
        }
        /// The URL of the answer, after redirects.
        public var url: URL? { delivered.url }
        /// The head as Foundation's object, made when it is first needed. The very object of the transport, if the
        /// transport gave one and no `Cache-Status` was added.
        public var response: HTTPURLResponse {
            guard let response = delivered.response as? HTTPURLResponse else {
                preconditionFailure("Foundation makes no response with status \(delivered.status).")
            }
            return response
        }
        /// The report of the load so far. The outcome is final; bytes, duration, and why the answer was not
        /// stored are complete once the body has ended.
        public var report: Report { reader.report }

        private let delivered: DeliveredHead
        private let reader: LoadReader

        init(_ delivered: DeliveredHead, _ reader: LoadReader) {
            self.delivered = delivered
            self.reader = reader
        }

        /// The next piece of the body, nil at its end. Throws the error of the transport, or `CancellationError`: a
        /// body that ends without an error is whole.
        public func next() async throws -> Data? {
            try await reader.next()
        }

        /// The stream itself: all iterators continue after the last piece that was read.
        public func makeAsyncIterator() -> ResponseStream { self }
    }
}
