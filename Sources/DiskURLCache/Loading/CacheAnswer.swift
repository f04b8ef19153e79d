import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An answer and where it came from.
public struct CacheAnswer: Sendable {
    /// The body, decoded.
    public let data: Data
    /// The head: status and header fields.
    public let response: HTTPURLResponse
    /// Served although no longer fresh, on purpose.
    public var isStale: Bool { summary.isStale }
    /// All that is known about the load: ``CacheLoadReport/outcome`` says where the answer came from, and why,
    /// ``CacheLoadReport/age`` how old it is.
    public var report: CacheLoadReport { summary.loadReport }

    private let summary: LoadSummary

    init(data: Data, response: HTTPURLResponse, summary: LoadSummary) {
        self.data = data
        self.response = response
        self.summary = summary
    }
}
