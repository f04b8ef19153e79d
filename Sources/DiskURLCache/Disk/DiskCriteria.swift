import Foundation

/// Which entries to remove: those for which every condition given holds.
struct DiskCriteria: Sendable, Hashable {
    var uriHash: UInt32?
    var hostHash: UInt32?
    var tag: String?
    /// Stored at or after this time.
    var storedAfter: Date?
    /// Stored before this time.
    var storedBefore: Date?
    /// Last used before this time.
    var accessedBefore: Date?
    /// Prefix of the response's canonical URL. An entry without a URL matches: `hostHash` narrows it down.
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
    /// - Parameter isCurrent: false where another process may have stored or freshened the record since the row was made: only what
    ///   all records of a key have in common counts then.
    func judge(_ row: IndexRow, isCurrent: Bool = true) -> Judgement {
        if let accessedBefore, row.accessedAt >= accessedBefore.recordSeconds { return .doesNotMatch }
        if row.isPartial { return .mayMatch }
        if let uriHash, row.uriHash != uriHash { return .doesNotMatch }
        if let hostHash, row.hostHash != hostHash { return .doesNotMatch }
        let canChange = tag != nil || storedAfter != nil || storedBefore != nil
        if !isCurrent, canChange { return .mayMatch }
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
        guard let urlPrefix, let url = metadata.url else { return true }
        return URLCanonicalizer.canonical(url)?.hasPrefix(urlPrefix) ?? true
    }

    /// Whether an entry that is not in the index matches: one that waits to be written, or that an app's own storage holds. Its
    /// storing counts as its last use.
    func matches(_ key: DiskKey, _ metadata: EntryMetadata) -> Bool {
        if let uriHash, key.uriHash != uriHash { return false }
        if let hostHash, key.hostHash != hostHash { return false }
        if let accessedBefore, metadata.storedAt >= accessedBefore { return false }
        return matches(metadata)
    }
}
