import DiskURLCache
import Foundation

extension DiskURLCache {
    /// An answer whose body is read once, piece by piece as it arrives; see
    /// `DiskURLCache.load(_:through:variant:redirect:)`.
    ///
    /// ```swift no-check
    /// for try await piece in stream { … }
    /// ```
    ///
    /// Read the body to its end: if the reader stops, the load is cancelled and the answer may not be stored. The
    /// transfer pauses while more than 1 MB is unread; other loads that wait for the same answer then send their own
    /// requests.
    public struct ResponseStream: AsyncSequence, AsyncIteratorProtocol, Sendable {
        /// Status and header fields. From the network, they are as the transport delivered them.
        public var head: Head {
            Head(ResponseHead(status: delivered.status, fields: delivered.fields))
        }
        /// The URL of the answer, after redirects.
        public var url: URL? { delivered.url }
        /// The head as Foundation's object, made when it is first needed. If the transport delivered an object and no
        /// `Cache-Status` was added, it is that object.
        public var response: HTTPURLResponse {
            guard let response = delivered.response as? HTTPURLResponse else {
                preconditionFailure("Foundation makes no response with status \(delivered.status).")
            }
            return response
        }
        /// The report of the load so far. The outcome is final; the number of bytes, the duration, and the reason why
        /// the answer was not stored are final once the body has ended.
        public var report: Report { reader.report }

        private let delivered: DeliveredHead
        private let reader: LoadReader

        init(_ delivered: DeliveredHead, _ reader: LoadReader) {
            self.delivered = delivered
            self.reader = reader
        }

        /// The next piece of the body, nil at its end. Throws the error of the transport, or `CancellationError`. A
        /// body that ends without an error is complete.
        public func next() async throws -> Data? {
            try await reader.next()
        }

        /// The stream itself: an iterator continues after the last piece that any of them has read.
        public func makeAsyncIterator() -> ResponseStream { self }
    }
}
