import Foundation

// Responses that answer for several spellings of their URLs (No-Vary-Search): how they are found, stored and removed.

extension TieredStore {
    /// In an app's storage such responses answer for their own URLs only: it would be asked once more at each miss.
    private var keepsVariations: Bool { disk == nil || diskStore != nil }

    /// False if the key's URL surely has no equivalent under which something is stored. Reads no record.
    func mayHaveEquivalent(of key: RequestKey) -> Bool {
        guard hasVariations.withLock({ $0 }) != false, keepsVariations, let list = key.variationList else {
            return false
        }
        return isStored(list)
    }

    /// The stored responses of an equivalent of the key's URL, and their key; nil without any. May read the disk.
    func equivalent(of key: RequestKey) -> (key: RequestKey, variants: [StoredVariant])? {
        guard mayHaveEquivalent(of: key), let listKey = key.variationList, let list = variations(under: listKey) else {
            return nil
        }
        for variation in list.variations {
            let other = key.simplified(by: variation, of: list)
            // A 304 may have changed what a response says: it no longer answers for the spelling by which it was found.
            let variants = lookup(other).variants().filter {
                $0.metadata.http.flatMap { SearchVariation($0.fields) } == variation
            }
            if !variants.isEmpty { return (other, variants) }
        }
        return nil
    }

    /// The key under which a response to a request is stored: what it says in `No-Vary-Search` decides.
    func storingKey(_ key: RequestKey, for fields: HeaderFields, at now: Date) -> RequestKey {
        guard let value = fields["No-Vary-Search"], let variation = SearchVariation(fields), keepsVariations,
            let listKey = key.variationList
        else { return key }
        let known = variations(under: listKey)
        if let known, known.variations.first == variation { return key.simplified(by: variation, of: known) }
        // Another thread may do the same: the list that is stored last leads to what is stored after it.
        let list = known?.noting(value) ?? VariationList(value)
        let metadata = EntryMetadata(
            response: .other(mimeType: Self.listType, expectedContentLength: -1, textEncodingName: nil), storedAt: now,
            placement: .memoryAndDisk)
        store(metadata, .memory(Data(list.text.utf8)), for: listKey, isList: true)
        // Read, since a guest never knows for sure that nothing is stored under a key.
        if !contains(Self.mark) { store(metadata, .memory(Data()), for: Self.mark, isList: true) }
        hasVariations.withLock { $0 = true }
        return key.simplified(by: variation, of: list)
    }

    /// Removes what is stored for several spellings of a URL of the same path: rather too much is removed than too
    /// little.
    func removeVariations(of uri: String, by ticket: StoreTicket? = nil) {
        guard keepsVariations else { return }
        let list = RequestKey.variationList(of: uri)
        // First for answers that were asked for before, and will be stored under such a key.
        removals.note(resource: list.resource, uri: list.uri, by: ticket, at: now)
        if isStored(list) { remove(uri: list.uri, by: ticket) }
    }

    /// Marks what is stored for several spellings of a URL of the same path as stale: rather too much than too little.
    func markVariationsStale(of uri: String, matching criteria: EntryCriteria, at time: Date) {
        guard keepsVariations else { return }
        let list = RequestKey.variationList(of: uri)
        var ofPath = criteria
        ofPath.resource = list.resource
        // First for answers that were asked for before, and would be stored under such a key.
        removals.end(removals.begin(markingStale: ofPath, since: time))
        if isStored(list) { markStale(matching: ofPath, at: time) }
    }

    /// Stored beside the lists, so that a cache without lists looks for none.
    private static let mark = RequestKey(text: "#no-vary-search", uri: nil, isForHead: false)

    /// In each pass. Counts as a use of the mark.
    func lookForVariations() {
        guard keepsVariations else { return }
        let isMarked = !isUnknownBelow(Self.mark)
        if isMarked { _ = disk?.variants(of: Self.mark) }
        hasVariations.withLock { if $0 != true { $0 = isMarked } }
    }

    private static let listType = "application/x-no-vary-search"

    private func isStored(_ list: RequestKey) -> Bool { memory.contains(list) || !isUnknownBelow(list) }

    private func variations(under key: RequestKey) -> VariationList? {
        let entry = lookup(key).variants().first?.load()
        return entry.flatMap { VariationList(text: String(decoding: $0.body, as: UTF8.self)) }
    }
}
