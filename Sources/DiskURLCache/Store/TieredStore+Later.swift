import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension TieredStore {
    /// Stores a response in memory at once, and on disk by the maintenance queue, which a flush waits for. A removal, or
    /// a later response, until then counts for the file, too.
    func storeLater(
        _ metadata: EntryMetadata, _ body: Data, presented: CachedURLResponse?, for key: RequestKey
    ) {
        let ticket = ticket(at: metadata.storedAt)
        var early = metadata
        early.sequence = sequence.next(at: metadata.storedAt)
        let entry = StoredEntry(metadata: early, body: body, presented: presented)
        if entry.memoryCost <= largestMemoryEntry {
            memory.update(key) { record in
                if record == nil || entry.answersEveryRequest {
                    record = MemoryRecord(isComplete: entry.answersEveryRequest)
                }
                record?.insert(entry, for: metadata.varyKey)
            }
            weakResponses.removeValue(for: key)
        }
        maintenance.enqueue { [self] in
            store(metadata, .memory(body), presented: presented, for: key, ticket: ticket)
        }
    }
}
