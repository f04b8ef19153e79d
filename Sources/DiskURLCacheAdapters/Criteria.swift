import DiskURLCache
import Foundation

extension DiskURLCache {
    /// Which entries a `DiskURLCache.EntryStorage` is to remove: those for which every condition given holds; without a
    /// condition, all of them. A cache makes these.
    public struct Criteria: Sendable, Hashable {
        let criteria: EntryCriteria

        init(_ criteria: EntryCriteria) { self.criteria = criteria }

        /// All entries.
        public static let everything = Criteria(.everything)

        /// The place of the entries.
        public enum Scope: Sendable, Hashable {
            /// All entries of a name, or the one of a variant (`DiskURLCache.Entry.variant`).
            case name(String, variant: String?)
            /// All entries that have this among their `DiskURLCache.Entry.groups`.
            case group(String)
            case everything
            /// The storage has to try each entry: `DiskURLCache.Criteria.matches(_:)`.
            case anywhere
        }

        /// Where the storage searches. All entries there match, except with `anywhere`.
        public var scope: Scope {
            if let key = criteria.key { return .name(key.digest.hex, variant: criteria.variant) }
            var rest = criteria
            (rest.resource, rest.hostHash, rest.tag) = (nil, nil, nil)
            // With several conditions, each entry has to be tried.
            guard rest == .everything else { return .anywhere }
            switch (criteria.resource, criteria.hostHash, criteria.tag) {
            case (nil, nil, nil): return .everything
            case (let hash?, nil, nil): return .group(EntryGroup.uri(hash).name)
            case (nil, let hash?, nil): return .group(EntryGroup.host(hash).name)
            case (nil, nil, let tag?): return .group(EntryGroup.tag(tag).name)
            default: return .anywhere
            }
        }

        /// Whether an entry is to be removed.
        public func matches(_ entry: Entry) -> Bool {
            if let key = criteria.key {
                return entry.key == key && (criteria.variant == nil || entry.variant == criteria.variant)
            }
            return criteria.matches(entry.entry.metadata, resource: entry.key.resource, hostHash: entry.key.hostHash)
        }

        /// A message about this removal for other processes, which hand it to their caches by
        /// `DiskURLCache.EntryStorage.removalsByOthers()`: up to 33 letters and digits, with a hash of the key or the
        /// URL. Any other removal is reported as a removal of everything.
        public var message: String {
            if let key = criteria.key { return "n" + key.name.hex }
            guard let resource = criteria.resource, criteria == EntryCriteria(resource: resource) else {
                return "everything"
            }
            return "u" + String(resource, radix: 16)
        }
    }
}

// Removals, as one process tells another: a key, a URL, or everything.

extension EntryCriteria {
    /// A message that is not understood is one of everything.
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
