import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An answer whose body is read as it comes, piece by piece and once; see
/// ``DiskURLCache/DiskURLCache/load(_:through:variant:redirect:)``.
///
/// ```swift no-check
/// for try await piece in stream { … }
/// ```
///
/// Read to the end, else the answer may not be stored: when nothing reads it any more, the load is cancelled. The transfer is held
/// up while more than 1 MB is not read, unless other loads wait for the same answer.
public struct CacheStream: AsyncSequence, AsyncIteratorProtocol, Sendable {
    /// The head: status and header fields. From the network it is the very object that the transport made, unless
    /// `Cache-Status` was added.
    public let response: HTTPURLResponse
    /// What is known of the load by now. The outcome does not change any more; bytes, duration, and why the answer was not
    /// stored are complete once the body has ended.
    public var report: CacheLoadReport { reader.report }

    private let reader: LoadReader

    init(_ response: HTTPURLResponse, _ reader: LoadReader) {
        self.response = response
        self.reader = reader
    }

    /// The next piece of the body, nil at its end. Throws what the transport throws, or `CancellationError`: a body
    /// that ends without an error is whole.
    public func next() async throws -> Data? {
        try await reader.next()
    }

    /// The stream itself: all iterators read on where the last one stopped.
    public func makeAsyncIterator() -> CacheStream { self }
}
