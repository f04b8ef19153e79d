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
/// up while more than 1 MB is not read, unless other loads wait for the same answer. What is not read then waits in the file in
/// which a large body is gathered, or in memory where the body is not to be stored on disk.
public struct CacheStream: AsyncSequence, AsyncIteratorProtocol, Sendable {
    /// Status and header fields, those of the network as the transport gave them.
    public var head: CacheHead {
        CacheHead(status: delivered.status, fields: delivered.fields.fields.map { ($0.name, $0.value) })
    }
    /// Where the answer came from, redirects followed.
    public var url: URL? { delivered.url }
    /// The head as Foundation has it, made when it is first asked for. The very object that the transport gave, where it gave one and
    /// no `Cache-Status` was added.
    public var response: HTTPURLResponse {
        guard let response = delivered.response as? HTTPURLResponse else {
            preconditionFailure("Foundation makes no response with status \(delivered.status).")
        }
        return response
    }
    /// What is known of the load by now. The outcome does not change any more; bytes, duration, and why the answer was not
    /// stored are complete once the body has ended.
    public var report: CacheLoadReport { reader.report }

    private let delivered: DeliveredHead
    private let reader: LoadReader

    init(_ delivered: DeliveredHead, _ reader: LoadReader) {
        self.delivered = delivered
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
