import Foundation

// Removals of many entries at once, and pins.

extension DiskURLCache {
    /// Removes every response with a tag (``Options/tags``), such as those of an account, from memory and disk before
    /// it returns. If another process uses or used the directory, and on Apple platforms always, it reads the head of
    /// every record on the caller's thread.
    public func removeCachedResponses(tag: String) {
        core.store.remove(matching: EntryCriteria(tag: tag))
    }

    /// Removes every entry of a group that responses named in `Cache-Groups` (RFC 9875), or in one of
    /// ``Configuration/groupFields``, from memory and disk before it returns. Takes as long as
    /// ``removeCachedResponses(tag:)``.
    /// - Parameters:
    ///   - group: the name that the server sends. Case matters.
    ///   - url: any URL of the server: a group is one of an origin (scheme, host and port). A URL of another kind
    ///     removes nothing, and an event says so (``Error/Code/invalidPattern``).
    public func removeCachedResponses(group: String, of url: URL) {
        guard let parts = URLCanonicalizer.parts(of: url.absoluteString) else {
            return reportNothingRemoved("\"\(url.withoutQuery ?? "")\" is no http or https URL with a host.")
        }
        core.store.remove(matching: EntryCriteria(group: group, of: parts))
    }

    /// Removes every response that was stored for a request with this `Authorization` field, such as those of an
    /// account that logs out, from memory and disk before it returns. Takes as long as ``removeCachedResponses(tag:)``.
    /// - Parameter authorization: the field's value as it was sent, such as `Bearer abc`.
    public func removeCachedResponses(authorization: String) {
        removeCachedResponses(tag: core.tag(ofCredentials: authorization))
    }

    /// Removes every response of a host, but not of its subdomains, from memory and disk before it returns.
    /// - Parameter host: the name as in a URL, an international one in any form that Foundation gives; upper and lower
    ///   case and a trailing dot make no difference. If the text cannot be a host's name, nothing is removed, and an
    ///   event says so (``Error/Code/invalidPattern``).
    public func removeCachedResponses(host: String) {
        guard let name = URLCanonicalizer.host(host) else {
            return reportNothingRemoved(
                "\(host.quotedWithoutCredentials) is not a host; give the name alone, as in \"example.com\".")
        }
        core.store.remove(matching: EntryCriteria(hostHash: RequestKey.hostHash(name)))
    }

    /// Removes every response whose canonical URL begins with a text. Different spellings of the same URL make no
    /// difference. Reads every record of the host on the caller's thread, so it takes longer than the other removals.
    ///
    /// Responses of the host that were stored without their URL (``Configuration/keepsURLs`` was false) are all
    /// removed, so that none is left that should be removed.
    /// - Parameter prefix: scheme and host, and the path or its beginning. If no URL can begin with the text, nothing
    ///   is removed, and an event says so (``Error/Code/invalidPattern``).
    public func removeCachedResponses(urlPrefix prefix: String) {
        guard let canonical = URLCanonicalizer.prefix(prefix) else {
            return reportNothingRemoved(
                "no URL begins with \(prefix.quotedWithoutCredentials); write \"https://example.com/path\".")
        }
        core.store.remove(
            matching: EntryCriteria(hostHash: canonical.host.map(RequestKey.hostHash), urlPrefix: canonical.text))
    }

    /// Pins the stored responses to a request, or unpins them. Pinned responses are evicted last, as long as they take
    /// no more than ``Configuration/pinnedFraction`` of the disk capacity. Removals remove them like any other. Reads
    /// and writes a few hundred bytes on disk, on the caller's thread.
    /// - Returns: whether a response is stored for the request; if not, nothing was pinned.
    @discardableResult
    public func setPinned(_ isPinned: Bool, for request: URLRequest) -> Bool {
        core.setPinned(isPinned, for: request)
    }

    /// Removes the responses that were stored before a date, from memory and disk before it returns. Takes as long as
    /// ``removeCachedResponses(tag:)``.
    public func removeCachedResponses(olderThan date: Date) {
        core.store.remove(matching: EntryCriteria(storedBefore: date))
    }

    /// Empties one layer and leaves the others unchanged. Returns at once, however many responses there are. Fallback
    /// directories are never changed: for `.fallback` nothing is removed, and an event says so
    /// (``Error/Code/invalidPattern``). `.disk` is also a storage of the app, whatever its name.
    public func removeAllCachedResponses(from layer: Layer) {
        switch layer {
        case .memory:
            core.recent.removeAll()
            core.store.removeMemory()
        case .disk, diskLayer: core.store.removeDisk()
        case .fallback: reportNothingRemoved("fallback directories are read-only; give .memory or .disk.")
        default: reportNothingRemoved("there is no layer \(layer); give .memory or .disk.")
        }
    }

    /// Empties the memory layer when the app runs short of memory. Lookups still find responses that the app holds, for
    /// as long as it holds them. Can be called from any thread; returns at once.
    func relieveMemoryPressure() {
        if core.isBySystem { super.removeAllCachedResponses() }
        core.recent.removeAll()
        core.store.relieveMemory()
    }

    private func reportNothingRemoved(_ details: String) {
        core.hub.emit(.problem(Error(.invalidPattern, details: details)))
    }
}
