import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// Removing many at once, and keeping some.

extension DiskURLCache {
    /// Removes every entry with a tag (``CacheTreatment/tags``), such as those of one account. Gone from memory and disk when this
    /// returns. Where another process uses the directory, or did, and on Apple platforms always, the head of every record is read on
    /// the caller's thread.
    public func removeCachedResponses(tag: String) {
        var criteria = EntryCriteria()
        criteria.tag = tag
        store.remove(matching: criteria)
    }

    /// Removes every entry of a host, but not of its subdomains. Gone from memory and disk when this returns.
    /// - Parameter host: the name as in a URL; upper and lower case make no difference.
    public func removeCachedResponses(host: String) {
        var criteria = EntryCriteria()
        criteria.hostHash = RequestKey.hostHash(host.lowercased())
        store.remove(matching: criteria)
    }

    /// Removes every entry whose URL begins with a text. Reads every record on disk on the caller's thread, so it takes longer
    /// than the others. Entries that were stored while ``Configuration/keepsURLs`` was false are not found.
    public func removeCachedResponses(urlPrefix prefix: String) {
        var criteria = EntryCriteria()
        criteria.urlPrefix = prefix
        store.remove(matching: criteria)
    }

    /// Pins the stored responses of a request, or unpins them. Pinned entries are evicted last, within
    /// ``Configuration/pinnedShare`` of the disk capacity. Every removal removes them. A body on disk is not written again.
    /// Reads and writes a few hundred bytes of the disk on the caller's thread.
    /// - Returns: false when nothing is stored for the request.
    @discardableResult
    public func setPinned(_ isPinned: Bool, for request: URLRequest) -> Bool {
        guard let key = key(for: request) else { return false }
        var isFound = false
        // Oldest first: each update makes its variant the most recent one.
        for variant in store.lookup(key).variants().reversed() {
            let metadata = variant.metadata
            let updated = store.update(metadata.sequence, of: key.keeping(metadata.http)) { $0.isPinned = isPinned }
            isFound = isFound || updated != nil
        }
        return isFound
    }
}
