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
    /// Seconds since the origin made or confirmed the answer, as far as is known; 0 from the network.
    public var age: TimeInterval { summary.report.age.map(TimeInterval.init) ?? 0 }
    /// Served although no longer fresh, on purpose.
    public var isStale: Bool { summary.isStale }
    /// All that is known about the load: ``CacheLoadReport/outcome`` says where the answer came from, and why.
    public var report: CacheLoadReport { summary.loadReport }

    private let summary: LoadSummary

    init(data: Data, response: HTTPURLResponse, summary: LoadSummary) {
        self.data = data
        self.response = response
        self.summary = summary
    }
}
