import Foundation

/// Which entries to remove: those for which every condition given holds.
struct DiskCriteria: Sendable, Hashable {
    /// See `KeyName.resource`.
    var resource: UInt64?
    var hostHash: UInt32?
    var tag: String?
    /// Stored at or after this time.
    var storedAfter: Date?
    /// Stored before this time.
    var storedBefore: Date?
    /// Last used before this time.
    var accessedBefore: Date?
    /// Prefix of the response's URL; an entry whose URL is kept off the disk never matches.
    var urlPrefix: String?
}

extension DiskCriteria {
    enum Judgement {
        case matches
        /// Only the record itself can tell.
        case mayMatch
        case doesNotMatch
    }

    /// What can be said by the index alone.
    func judge(_ row: IndexRow) -> Judgement {
        if let accessedBefore, row.accessedAt >= accessedBefore.recordSeconds { return .doesNotMatch }
        if let resource, row.key.resource != resource { return .doesNotMatch }
        if row.isPartial { return .mayMatch }
        if let hostHash, row.hostHash != hostHash { return .doesNotMatch }
        if let tag, !row.tagFilter.mayContain(tag) { return .doesNotMatch }
        // Rows know whole seconds: within the second of the boundary the record decides.
        if let storedAfter, row.storedAt < storedAfter.recordSeconds { return .doesNotMatch }
        if let storedBefore, row.storedAt > storedBefore.recordSeconds { return .doesNotMatch }
        let isNearBoundary = [storedAfter, storedBefore].contains {
            $0.map { $0.recordSeconds == row.storedAt } ?? false
        }
        return tag != nil || urlPrefix != nil || isNearBoundary ? .mayMatch : .matches
    }

    /// Whether the conditions on the metadata hold; times of use and hashes are not among them.
    func matches(_ metadata: EntryMetadata) -> Bool {
        if let tag, !metadata.tags.contains(tag) { return false }
        if let storedAfter, metadata.storedAt < storedAfter { return false }
        if let storedBefore, metadata.storedAt >= storedBefore { return false }
        if let urlPrefix {
            guard let url = metadata.url, url.hasPrefix(urlPrefix) else { return false }
        }
        return true
    }
}
