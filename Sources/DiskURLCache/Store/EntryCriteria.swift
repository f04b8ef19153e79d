import Foundation

/// Which entries an ``EntryStorage`` is to remove.
public struct EntryCriteria: Sendable, Hashable {
    /// Where the entries are to be found.
    public enum Scope: Sendable, Hashable {
        /// All entries of a name, or the one of a variant (``CacheEntry/variant``).
        case name(String, variant: String?)
        /// All entries that have this among their ``CacheEntry/groups``.
        case group(String)
        case everything
        /// Each entry has to be asked: ``EntryCriteria/matches(_:)``.
        case anywhere
    }

    /// Where to look. All entries there match, but for `anywhere`.
    public let scope: Scope
    let removal: SharedRemoval

    init(scope: Scope, removal: SharedRemoval) {
        self.scope = scope
        self.removal = removal
    }

    /// Whether an entry is to be removed.
    public func matches(_ entry: CacheEntry) -> Bool {
        if case .name(let name, let variant) = scope {
            return entry.key.digest.hex == name && (variant == nil || entry.variant == variant)
        }
        return removal.concerns(
            entry.key.name, entry.entry.metadata, uriHash: entry.key.uriHash, hostHash: entry.key.hostHash)
    }

    /// The criteria for other processes, which give them to their caches by ``EntryStorage/removalsByOthers()``. They hold hashes
    /// of names, URLs and tags.
    public func encoded() -> Data {
        var writer = ByteWriter(capacity: RemovalRow.length)
        RemovalRow(removal: removal, writer: 0).encode(to: &writer)
        return writer.withUnsafeBytes { Data($0) }
    }

    /// Reads what ``encoded()`` made. Nil for all else.
    public init?(encoded data: Data) {
        guard let row = data.withUnsafeBytes({ RemovalRow.decode($0) }) else { return nil }
        self.init(row.removal)
    }
}

extension EntryCriteria {
    /// As others told of it.
    init(_ removal: SharedRemoval) {
        self.init(scope: removal == .everything ? .everything : .anywhere, removal: removal)
    }

    init(_ key: RequestKey) {
        self.init(scope: .name(key.digest.hex, variant: nil), removal: .key(key.name))
    }

    init(_ entry: CacheEntry) {
        self.init(
            scope: .name(entry.key.digest.hex, variant: entry.variant), removal: .variant(entry.key.name))
    }

    init(_ criteria: DiskCriteria) {
        var rest = criteria
        (rest.uriHash, rest.hostHash, rest.tag) = (nil, nil, nil)
        let groups = [
            criteria.uriHash.map(EntryGroup.uri), criteria.hostHash.map(EntryGroup.host),
            criteria.tag.map(EntryGroup.tag),
        ].compactMap(\.self)
        // Of several conditions each entry has to be asked.
        let isWhole = rest == DiskCriteria() && groups.count == 1
        self.init(
            scope: isWhole ? .group(groups[0].name) : .anywhere, removal: .matching(SharedCriteria(criteria)))
    }

    /// All entries.
    public static let everything = EntryCriteria(scope: .everything, removal: .everything)
}

/// What entries are removed by together.
enum EntryGroup {
    case uri(UInt32)
    case host(UInt32)
    case tag(String)

    /// A digest, so that no storage learns a URL or a tag from it.
    var name: String {
        let text =
            switch self {
            case .uri(let hash): "uri \(hash)"
            case .host(let hash): "host \(hash)"
            case .tag(let tag): "tag \(tag)"
            }
        return SHA256Digest.digest(of: text).hex
    }
}
