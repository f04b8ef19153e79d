import Foundation

/// A condition on the entries to remove: all given properties must hold; without any, every entry matches.
///
/// A cache makes these, for its own layers and for a storage of the app's.
package struct EntryCriteria: Sendable, Hashable {
    /// The entries of this key only.
    package var key: DiskKey?
    /// The only variant to remove: `DiskURLCache.Entry.variant`.
    package var variant: String?
    /// The entries of a URL: see `KeyName.resource`.
    package var resource: UInt64?
    package var hostHash: UInt32?
    package var tag: String?
    /// Stored at or after this time.
    var storedAfter: Date?
    /// Stored before this time.
    var storedBefore: Date?
    /// Last used before this time.
    var accessedBefore: Date?
    /// Prefix of the response's canonical URL. An entry without a URL matches: `hostHash` narrows it down.
    var urlPrefix: String?

    package init(
        resource: UInt64? = nil, hostHash: UInt32? = nil, tag: String? = nil, storedAfter: Date? = nil,
        storedBefore: Date? = nil, accessedBefore: Date? = nil, urlPrefix: String? = nil
    ) {
        self.resource = resource
        self.hostHash = hostHash
        self.tag = tag
        self.storedAfter = storedAfter
        self.storedBefore = storedBefore
        self.accessedBefore = accessedBefore
        self.urlPrefix = urlPrefix
    }

    package init(_ key: DiskKey, variant: String? = nil) {
        self.key = key
        self.variant = variant
    }

    /// All entries.
    package static let everything = EntryCriteria()

    // MARK: The search

    // MARK: Matching

    /// Whether the conditions on the metadata hold; keys, hashes and times of use are not among them.
    func matches(_ metadata: EntryMetadata) -> Bool {
        if let tag, !metadata.tags.contains(tag) { return false }
        if let storedAfter, metadata.storedAt < storedAfter { return false }
        if let storedBefore, metadata.storedAt >= storedBefore { return false }
        guard let urlPrefix, let url = metadata.url else { return true }
        return URLCanonicalizer.canonical(url)?.hasPrefix(urlPrefix) ?? true
    }

    /// Whether an entry matches that has no time of use: an entry in memory, in the write buffer, or of an app's storage. The
    /// time when it was stored counts instead.
    package func matches(
        _ metadata: EntryMetadata, resource: @autoclosure () -> UInt64, hostHash: @autoclosure () -> UInt32
    ) -> Bool {
        if let hash = self.resource, hash != resource() { return false }
        if let hash = self.hostHash, hash != hostHash() { return false }
        if let accessedBefore, metadata.storedAt >= accessedBefore { return false }
        return matches(metadata)
    }

    func matches(_ key: RequestKey, _ metadata: EntryMetadata) -> Bool {
        matches(metadata, resource: key.resource, hostHash: key.hostHash)
    }
}

/// A property by which entries are removed together.
package enum EntryGroup {
    case uri(UInt64)
    case host(UInt32)
    case tag(String)

    /// A digest, so that no storage can read a URL or a tag in it.
    package var name: String {
        let text =
            switch self {
            case .uri(let hash): "uri \(hash)"
            case .host(let hash): "host \(hash)"
            case .tag(let tag): "tag \(tag)"
            }
        return SHA256Digest.digest(of: text).hex
    }
}
