import DiskURLCache
import Foundation

extension DiskURLCache {
    /// The facts of one stored response of a cache in use, without its body.
    public struct CachedEntry: Sendable {
        let found: EntryWalk.Found

        /// The URL, without user name and password. Nil if the cache does not write URLs (`Configuration.keepsURLs`).
        public var url: URL? { found.metadata.url.flatMap { URL(string: $0) }?.removingCredentials }
        /// The method that the response answers.
        public var method: String { found.metadata.http?.method ?? "" }
        /// The status.
        public var status: Int { found.metadata.http?.status ?? 0 }
        /// The stored header fields, in their order.
        public var fields: [(name: String, value: String)] {
            found.metadata.http?.fields.fields.map { ($0.name, $0.value) } ?? []
        }
        /// The length of the body in bytes.
        public var bytes: Int { found.bytes }
        /// When the response was stored, or last confirmed by a 304.
        public var storedAt: Date { found.metadata.storedAt }
        /// See `DiskURLCache.Options.tags`.
        public var tags: Set<String> { Set(found.metadata.tags.filter(CacheCore.isTagOfApp)) }
        /// See `DiskURLCache.Options.isPinned`.
        public var isPinned: Bool { found.metadata.isPinned }
        /// Whether the response is not on disk.
        public var isInMemoryOnly: Bool { found.isInMemoryOnly }
    }

    /// The stored responses, one after the other: those on disk, then those in memory alone. For tools and settings
    /// pages; an entry that is stored or removed meanwhile may be missing. The heads of records are read while the loop
    /// runs, on a queue of the cache; no body is read. Not those of an `EntryStorage`, which cannot list them, and of
    /// fallback directories.
    ///
    /// ```swift
    /// for await entry in cache.entries() where entry.bytes > 1 << 20 { print(entry.url as Any, entry.bytes) }
    /// ```
    public func entries() -> AsyncStream<CachedEntry> {
        let walk = Mutex<EntryWalk?>(nil)
        return AsyncStream(unfolding: { [self] in
            await perform { cache in
                let current = walk.withLock { walk in
                    if walk == nil { walk = EntryWalk(of: cache.core) }
                    return walk
                }
                return current?.next().map { CachedEntry(found: $0) }
            }
        })
    }

    /// Removes the stored responses for which a closure returns true, from memory and disk before it returns: among
    /// those that `entries()` gives. Reads the head of every record, on a queue of the cache.
    /// - Returns: how many were removed.
    @discardableResult
    public func remove(where isRemoved: @escaping @Sendable (CachedEntry) -> Bool) async -> Int {
        await perform { cache in
            let walk = EntryWalk(of: cache.core)
            var count = 0
            while let found = walk.next() {
                if isRemoved(CachedEntry(found: found)), walk.remove(found) { count += 1 }
            }
            return count
        }
    }
}

extension DiskURLCache.CachedEntry: PrintedByDescription {
    /// The URL, the status and the length of the body, in one line. The query of the URL is not printed.
    package var printedText: String {
        "\(method) \(url?.printed ?? "an entry without its URL"): \(status), \(bytes) bytes"
    }
}
