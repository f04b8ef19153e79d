import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// Removing many at once, and keeping some.

extension DiskURLCache {
    /// Removes every entry with a tag (``Treatment/tags``): log out an account, leave a screen.
    public func removeCachedResponses(tag: String) {
        var criteria = DiskCriteria()
        criteria.tag = tag
        store.remove(matching: criteria) { _, metadata in metadata.tags.contains(tag) }
    }

    /// Removes every entry of a host; its subdomains are other hosts.
    public func removeCachedResponses(host: String) {
        let hash = RequestKey.hostHash(host.lowercased())
        var criteria = DiskCriteria()
        criteria.hostHash = hash
        store.remove(matching: criteria) { record, _ in record.hostHash == hash }
    }

    /// Removes every entry whose URL begins so. Reads the records on disk, so it takes longer than the others; entries
    /// stored while ``Configuration/keepsURLs`` was off are not found.
    public func removeCachedResponses(urlPrefix prefix: String) {
        var criteria = DiskCriteria()
        criteria.urlPrefix = prefix
        store.remove(matching: criteria) { _, metadata in metadata.url?.hasPrefix(prefix) == true }
    }

    /// Pins what is stored for a request against eviction, or gives it free again. Pinned entries are safe within
    /// ``Configuration/pinnedShare`` of the disk capacity; removing them by hand always works.
    /// - Returns: false when nothing is stored for the request.
    @discardableResult
    public func setPinned(_ isPinned: Bool, for request: URLRequest) -> Bool {
        guard let key = key(for: request) else { return false }
        var isFound = false
        // Oldest first: each is stored anew, and the most recent must stay so.
        for variant in store.variants(for: key).reversed() {
            guard let entry = variant.load() else { continue }
            isFound = true
            var metadata = entry.metadata
            metadata.isPinned = isPinned
            metadata.sequence = sequence.next(at: configuration.clock.now())
            store.store(StoredEntry(metadata: metadata, body: entry.body), for: key)
        }
        return isFound
    }
}
