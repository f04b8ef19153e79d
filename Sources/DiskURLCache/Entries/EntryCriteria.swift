import Foundation

/// Which entries to remove: those that meet all given conditions; without a condition, every entry.
///
/// Made by the cache, for its own layers and for an app's storage.
package struct EntryCriteria: Sendable, Hashable {
    /// The entries of this key only.
    package var key: DiskKey?
    /// The only variant to remove: `DiskURLCache.Entry.variant`.
    package var variant: String?
    /// The entries of a URL: see `KeyName.resource`. The hash can be constructed, so it comes with the host of the URL.
    package var resource: UInt64?
    package var host: HostName?
    /// The entries with at least one of these tags, which are compared by their bytes; without one, all.
    package var tags: [String] = []
    /// Stored at or after this time.
    var storedAfter: Date?
    /// Stored before this time.
    var storedBefore: Date?
    /// A prefix of the response's canonical URL, byte by byte. An entry that was stored without its URL matches, too;
    /// `host` limits those to the host.
    var urlPrefix: String?

    /// Whether the metadata meets the conditions; those on key, resource and host are not checked.
    func matches(_ metadata: EntryMetadata) -> Bool {
        if !tags.isEmpty, !metadata.tags.sharesText(with: tags) { return false }
        // As numbers: of a date that is none, `Date` says that it is at or after each other one.
        let storedAt = metadata.storedAt.timeIntervalSinceReferenceDate
        if let time = storedAfter?.timeIntervalSinceReferenceDate { guard storedAt >= time else { return false } }
        if let time = storedBefore?.timeIntervalSinceReferenceDate { guard storedAt < time else { return false } }
        guard let urlPrefix, let url = metadata.url else { return true }
        return URLCanonicalizer.canonical(url)?.utf8.starts(with: urlPrefix.utf8) ?? true
    }

    /// Whether an entry in memory meets all conditions.
    func matches(_ key: RequestKey, _ metadata: EntryMetadata) -> Bool {
        if let resource, resource != key.resource { return false }
        if let host, !host.isHost(ofNormal: key.uri) { return false }
        return matches(metadata)
    }

    /// Whether a record, or an entry in an app's storage, meets all conditions.
    package func matches(_ key: DiskKey, _ metadata: EntryMetadata) -> Bool {
        if let resource, resource != key.resource { return false }
        guard let host else { return matches(metadata) }
        let isOfHost = key.isItsURL ? metadata.url.map(host.isHost) ?? true : key.digest.host == host.digest
        return isOfHost && matches(metadata)
    }
}

extension [String] {
    /// The tags of an entry with further ones, sorted. Tags are compared by their bytes, as a removal compares them.
    func joined(withTags further: some Sequence<String>) -> [String] {
        var tags = self
        var known = Set(map(ByteText.init))
        for tag in further where known.insert(ByteText(tag)).inserted { tags.append(tag) }
        return tags.sorted()
    }

    /// Whether a text of one list is in the other one, byte by byte. An origin chooses how long the lists are, so the
    /// time does not grow with the product of their lengths. Short lists need no set.
    fileprivate func sharesText(with other: [String]) -> Bool {
        if count * other.count <= 1_024 { return contains { other.contains(where: $0.hasSameBytes) } }
        let (short, long) = count < other.count ? (self, other) : (other, self)
        let texts = Set(short.map(ByteText.init))
        return long.contains { texts.contains(ByteText($0)) }
    }
}

extension EntryCriteria {
    /// All entries.
    package static let everything = EntryCriteria()

    package init(_ key: DiskKey, variant: String? = nil) { self.init(key: key, variant: variant) }

    /// The entries of a URL, whatever else is in their keys.
    init(uri: String) {
        self.init(resource: KeyName.resource(of: uri), host: HostName(URLCanonicalizer.host(ofNormal: uri)))
    }

    /// The tags are those of groups, which name their origin and so the host.
    package var isOfGroups: Bool { !tags.isEmpty && tags.allSatisfy(CacheGroups.isGroup) }

    /// The responses that belong to one of some groups of an origin (RFC 9875 §2.1). The host narrows the search in an
    /// index.
    init(groups: some Sequence<String>, of parts: URLCanonicalizer.Parts) {
        self.init(
            host: HostName(parts.host),
            tags: groups.map { CacheGroups.tag(of: $0, origin: parts.origin) })
    }

    /// The same entries by criteria with one tag at most each.
    package var ofEachTag: [EntryCriteria] {
        if tags.count < 2 { return [self] }
        return tags.map { tag in
            var criteria = self
            criteria.tags = [tag]
            return criteria
        }
    }
}

/// A property by which entries are removed together.
package enum EntryGroup {
    case uri(UInt64, HostDigest)
    case host(HostDigest)
    case tag(String)

    /// A digest, so that a storage cannot read URLs or tags.
    package var name: String {
        let text =
            switch self {
            case .uri(let hash, let host): "uri \(hash) \(host.high) \(host.low)"
            case .host(let host): "host \(host.high) \(host.low)"
            case .tag(let tag): "tag \(tag)"
            }
        return SHA256Digest.digest(of: text).hex
    }
}
