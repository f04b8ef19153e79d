import DiskURLCache
import Foundation

extension DiskURLCache {
    /// The entries that a `DiskURLCache.EntryStorage` has to remove: those that meet all conditions, or all entries if
    /// there is no condition. Made by the cache.
    public struct Criteria: Sendable, Hashable {
        /// With one tag at most.
        let criteria: EntryCriteria

        init(_ criteria: EntryCriteria) { self.criteria = criteria }

        /// All entries.
        public static let everything = Criteria(.everything)

        /// Where the entries are. A later version may have further cases: for one that a storage does not know
        /// (`@unknown default`) it does what it does for `anywhere`, which is always right.
        @nonexhaustive public enum Scope: Sendable, Hashable {
            /// All entries with a name, or only the one with that `DiskURLCache.Entry.variant`.
            case name(String, variant: String?)
            /// All entries that have this among their `DiskURLCache.Entry.groups`.
            case group(String)
            case everything
            /// Anywhere: the storage has to call `DiskURLCache.Criteria.matches(_:)` for each entry.
            case anywhere
        }

        /// Where the storage finds the entries. All entries there match, except for `anywhere`.
        public var scope: Scope {
            if let key = criteria.key { return .name(key.digest.hex, variant: criteria.variant) }
            var rest = criteria
            rest.resource = nil
            rest.host = nil
            rest.tags = []
            // The tag of a group names its origin, and so the host.
            let host = criteria.isOfGroups ? nil : criteria.host
            // If there are several conditions, each entry has to be checked.
            guard rest == .everything else { return .anywhere }
            switch (criteria.resource, host, criteria.tags.first) {
            case (nil, nil, nil): return .everything
            case (let hash?, let host?, nil): return .group(EntryGroup.uri(hash, host.digest).name)
            case (nil, let host?, nil): return .group(EntryGroup.host(host.digest).name)
            case (nil, nil, let tag?): return .group(EntryGroup.tag(tag).name)
            default: return .anywhere
            }
        }

        /// Whether an entry is to be removed.
        public func matches(_ entry: Entry) -> Bool {
            if let key = criteria.key {
                return entry.key == key && (criteria.variant == nil || entry.variant == criteria.variant)
            }
            return criteria.matches(entry.key, entry.entry.metadata)
        }

        /// A message about this removal for other processes, whose storages return it from
        /// `DiskURLCache.EntryStorage.removalsByOthers()`. It has up to 33 letters and digits, with a hash of the key
        /// or the URL. The message about a removal that is not by key or URL means that everything was removed.
        public var message: String {
            if let key = criteria.key { return "n" + key.name.hex }
            return criteria.resource.map { "u" + String($0, radix: 16) } ?? "everything"
        }
    }
}

// Removals in messages between processes: of a key, of a URL, or of everything.

extension EntryCriteria {
    /// A message that cannot be read means that everything was removed.
    static func removal(_ message: String) -> DirectoryChange {
        var rest = message.dropFirst()
        switch message.first {
        case "n":
            if let name = rest.withUTF8({ KeyName(hex: UnsafeRawBufferPointer($0)) }) { return .removed(name) }
        case "u":
            if let resource = UInt64(rest, radix: 16) { return .removedResource(resource) }
        default: break
        }
        return .removedAll
    }
}
