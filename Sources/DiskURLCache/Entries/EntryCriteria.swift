import Foundation

/// Which entries to remove: those that meet all given conditions; without a condition, every entry.
///
/// Made by the cache, for its own layers and for an app's storage.
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
    /// A prefix of the response's canonical URL. An entry that was stored without its URL matches, too; `hostHash`
    /// limits those to the host.
    var urlPrefix: String?

    /// Whether the metadata meets the conditions; those on key and hashes are not checked.
    func matches(_ metadata: EntryMetadata) -> Bool {
        if let tag, !metadata.tags.contains(where: tag.hasSameBytes) { return false }
        if let storedAfter, metadata.storedAt < storedAfter { return false }
        if let storedBefore, metadata.storedAt >= storedBefore { return false }
        guard let urlPrefix, let url = metadata.url else { return true }
        return URLCanonicalizer.canonical(url)?.hasPrefix(urlPrefix) ?? true
    }

    /// Whether an entry in memory or in an app's storage meets all conditions.
    package func matches(
        _ metadata: EntryMetadata, resource: @autoclosure () -> UInt64, hostHash: @autoclosure () -> UInt32
    ) -> Bool {
        if let hash = self.resource, hash != resource() { return false }
        if let hash = self.hostHash, hash != hostHash() { return false }
        return matches(metadata)
    }

    func matches(_ key: RequestKey, _ metadata: EntryMetadata) -> Bool {
        matches(metadata, resource: key.resource, hostHash: key.hostHash)
    }
}

extension [String] {
    /// The tags of an entry with further ones, sorted. Tags are compared by their bytes, as a removal compares them.
    func joined(withTags further: some Sequence<String>) -> [String] {
        var tags = self
        for tag in further where !contains(where: tag.hasSameBytes) { tags.append(tag) }
        return tags.sorted()
    }
}

extension EntryCriteria {
    /// All entries.
    package static let everything = EntryCriteria()

    package init(_ key: DiskKey, variant: String? = nil) { self.init(key: key, variant: variant) }

    package init(resource: UInt64) { self.init(key: nil, resource: resource) }

    /// The tag is that of a group, which names its origin and so the host.
    package var isOfGroup: Bool { tag.map(CacheGroups.isGroup) == true }

    /// The responses that belong to a group of an origin (RFC 9875 §2.1). The host narrows the search in an index.
    init(group: String, of parts: URLCanonicalizer.Parts) {
        self.init(
            hostHash: RequestKey.hostHash(parts.host), tag: CacheGroups.tag(of: group, origin: parts.origin))
    }
}

/// A property by which entries are removed together.
package enum EntryGroup {
    case uri(UInt64)
    case host(UInt32)
    case tag(String)

    /// A digest, so that a storage cannot read URLs or tags.
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
