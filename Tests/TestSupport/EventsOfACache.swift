import DiskURLCache
import Foundation
import Testing

extension AsyncStream<DiskURLCache.Event> {
    /// What the next event of a load says; nil, and an issue, if there is none.
    public func report(sourceLocation: SourceLocation = #_sourceLocation) async -> DiskURLCache.Report? {
        await first("the report of a load", sourceLocation: sourceLocation) {
            if case .load(let report) = $0 { report } else { nil }
        }
    }

    /// Waits for a response that is stored.
    public func stored(sourceLocation: SourceLocation = #_sourceLocation) async {
        _ = await first("the event of a stored response", sourceLocation: sourceLocation) {
            if case .stored = $0 { true } else { nil }
        }
    }

    /// The next response that is not stored.
    public func notStored(
        sourceLocation: SourceLocation = #_sourceLocation
    ) async -> (url: URL?, reason: DiskURLCache.Reason)? {
        await first("the event of a response that is not stored", sourceLocation: sourceLocation) {
            if case .notStored(let url, let reason) = $0 { (url, reason) } else { nil }
        }
    }
}

extension DiskURLCache.Event {
    public var isLoad: Bool { if case .load = self { true } else { false } }
}
