import Foundation

// Bodies that are written to disk while they arrive. They are in no memory layer and in no buffer: each becomes a record at once.

extension TieredStore {
    /// Bodies up to this length are gathered in memory, in bytes.
    static let gatheringLimit = 1 << 20

    /// Whether a large body may be left on disk: there is a disk layer of ours, and it takes what memory takes. An app's own
    /// storage gets whole bodies.
    var takesIncoming: Bool {
        guard let diskStore, diskStore.isOwnProcess else { return false }
        return diskStore.largestEntry >= max(largestMemoryEntry, Self.gatheringLimit)
    }

    /// Writes the next piece, the first one into a file that it makes, and makes room for it before. Tells why where that cannot be
    /// done. From one thread at a time.
    func append(_ data: Data, to body: inout IncomingBody?) -> CacheNotStoredReason? {
        guard let disk = diskStore else { return .diskFailed(errno: 0) }
        do throws(Errno) {
            if body == nil { body = try disk.beginIncoming() }
            guard let file = body else { throw Errno(0) }
            if file.reserve(data.count), !hasRoom(disk) { throw Errno(ENOSPC) }
            try file.append(data)
            return nil
        } catch {
            return .diskFailed(errno: error.code)
        }
    }

    /// The directory keeps to its capacity while a body arrives. A cache that does not maintain it leaves that to the one that does.
    private func hasRoom(_ disk: DiskStore) -> Bool {
        guard disk.isOverCapacity else { return true }
        maintenance.perform {
            noteUses()
            disk.evictIfNeeded(now: false)
        }
        guard disk.isOverCapacity else { return true }
        // Where the role is taken for passes only, the next one evicts.
        if !disk.isMaintainer { maintenance.schedule(after: 0) }
        return !disk.isMaintainer
    }

    /// Stores a response whose body has arrived whole, as `store` does with one in memory.
    func store(
        _ metadata: EntryMetadata, _ body: IncomingBody, for key: RequestKey, ticket: StoreTicket?
    ) -> CacheNotStoredReason? {
        let length = body.count
        let reason = stripe(of: key).withLock { _ -> CacheNotStoredReason? in
            takeRemovalsNow()
            var metadata = metadata
            metadata.sequence = sequence.next(at: metadata.storedAt)
            if let ticket, let reason = outdated(metadata, for: key, ticket) { return reason }
            return adopt(body, metadata, for: key, ticket)
        }
        tellStored(metadata, bytes: length, unless: reason)
        // Who removes from now on finds it; and what was removed by another process a moment ago goes.
        if reason == nil { takeRemovalsNow(isCertain: true) }
        body.discard()
        updateReserved()
        return reason
    }

    /// With the key's stripe held.
    private func adopt(
        _ body: IncomingBody, _ metadata: EntryMetadata, for key: RequestKey, _ ticket: StoreTicket?
    ) -> CacheNotStoredReason? {
        guard let disk = diskStore else { return .diskFailed(errno: 0) }
        let varyKey = metadata.varyKey
        var buffered: [WriteBuffer.Write] = []
        let result = writing.withLock { _ -> DiskWriteResult? in
            // Removals by others are taken in without the stripe; those that come from now on wait for this write and find it.
            if let ticket, history.concerns(key, metadata, since: ticket.removal, ticket: ticket.number) {
                return nil
            }
            let result = disk.adopt(body, metadata, for: key, usedAt: MonotonicTime.nanoseconds)
            if case .dropped(.failed) = result { return result }
            if case .dropped(.unavailable) = result { return result }
            // An older one that waits to be written must not come after it.
            buffered = buffer.cancel(key) { $0.metadata.varyKey == varyKey }
            noteUnconfirmed(key, metadata)
            return result
        }
        buffer.drop(buffered)
        switch result {
        case nil: return .removedMeanwhile
        // What was stored before stays, as far as it can.
        case .dropped(.failed(let errno))?: return .diskFailed(errno: errno)
        case .dropped(.unavailable)?: return .diskFailed(errno: 0)
        case .dropped(let reason)?:
            removeFromMemory(key) { $0.varyKey == varyKey }
            return CacheNotStoredReason(reason)
        case .written?, .superseded?:
            weakResponses.remove(key)
            memory.update(key) { record in
                guard var record else { return nil }
                record.insert(nil, for: varyKey)
                return record.variants.isEmpty ? nil : (record, record.cost)
            }
            return nil
        }
    }
}
