import Dispatch
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// Stores and updates. Each holds the stripe of its key.

extension TieredStore {
    // MARK: Storing

    /// Stores a response in place of the one with the same variant. Every later lookup sees it; the disk has it soon. Tells why
    /// where it is not stored: then what was stored before for the variant is gone, unless the reason is that it is newer.
    ///
    /// Above half of the buffer's limit the caller is slowed down, by a few milliseconds at most, since the disk takes tens of
    /// them for a file now and then; at the limit the caller waits for the disk, and after two seconds the entry is dropped.
    ///
    /// - Parameters:
    ///   - metadata: their sequence number is given here, where calls for one key are in order.
    ///   - presented: the object that the caller stored, where it holds what only memory can keep.
    ///   - ticket: of a load that asked the network: what was removed since then is not stored.
    @discardableResult
    func store(
        _ metadata: EntryMetadata, body: Data, presented: CachedURLResponse? = nil, for key: RequestKey,
        ticket: StoreTicket? = nil
    ) -> DiskURLCache.Reason? {
        let reason = stripe(of: key).withLock { _ -> DiskURLCache.Reason? in
            // What comes after the removal is not to go with it.
            disk?.lookNow()
            var metadata = metadata
            metadata.sequence = sequence.next(at: metadata.storedAt)
            if let reason = prepare(&metadata, for: key, ticket) { return reason }
            let entry = StoredEntry(metadata: metadata, body: body, presented: presented)
            let limit = largestStorableBody
            guard entry.body.count <= limit else {
                erase(key, varyKey: entry.metadata.varyKey)
                return .tooLarge(bytes: entry.body.count, limit: limit)
            }
            let reason = place(entry, for: key)
            // A removal by another cache may have been applied since `prepare` asked.
            guard let ticket, history.concerns(key, metadata, since: ticket.removal, ticket: ticket.number) else {
                return reason
            }
            erase(key, varyKey: metadata.varyKey)
            return .removedMeanwhile
        }
        tellStored(metadata, bytes: body.count, unless: reason)
        updateReserved()
        return reason
    }

    /// - Parameter reason: why it was not stored.
    func tellStored(_ metadata: EntryMetadata, bytes: Int, unless reason: DiskURLCache.Reason?) {
        // An event is made where somebody listens only, and so is its URL.
        if let reason {
            hub.emit(.notStored(url: metadata.foundationURL, reason: reason))
        } else {
            hub.count { $0.stores += 1 }
            hub.emit(
                .stored(url: metadata.foundationURL, bytes: bytes, inMemoryOnly: metadata.placement != .memoryAndDisk))
        }
    }

    /// To be taken when the network is asked.
    func ticket(at now: Date) -> StoreTicket {
        disk?.lookNow()
        return history.ticket(at: now)
    }

    /// Gives the response the tags of the one that it replaces: a request without tags takes no entry out of reach of a removal. Returns why
    /// an answer that was under way meanwhile is not stored any more. With the key's stripe held.
    private func prepare(_ metadata: inout EntryMetadata, for key: RequestKey, _ ticket: StoreTicket?) -> DiskURLCache
        .Reason?
    {
        if let ticket, history.concerns(key, metadata, since: ticket.removal, ticket: ticket.number) {
            return .removedMeanwhile
        }
        let replaced = replaced(by: metadata.varyKey, of: key)
        // Another load that asked later has stored its answer already.
        if ticket != nil, let asked = metadata.http?.requestTime,
            replaced.contains(where: { $0.http.map { $0.requestTime > asked } == true })
        {
            return .removedMeanwhile
        }
        let tags = replaced.reduce(into: Set(metadata.tags)) { $0.formUnion($1.tags) }
        if tags.count > metadata.tags.count { metadata.tags = tags.sorted() }
        return nil
    }

    /// The stored responses of one variant, in the first layer that has any.
    private func replaced(by varyKey: VaryKey, of key: RequestKey) -> [EntryMetadata] {
        var found = (memory.value(for: key)?.variants ?? []).map(\.metadata)
        found += buffer.entries(of: key).map(\.metadata)
        found.removeAll { $0.varyKey != varyKey }
        // Memory may have evicted it, and another process may have stored it.
        guard found.isEmpty, let disk, disk.mayContain(key) else { return found }
        return disk.variants(of: key).map(\.metadata).filter { $0.varyKey == varyKey }
    }

    /// With the key's stripe held.
    private func place(_ entry: StoredEntry, for key: RequestKey) -> DiskURLCache.Reason? {
        weakResponses.remove(key)
        let varyKey = entry.metadata.varyKey
        let isKept = entry.memoryCost <= largestMemoryEntry
        var reason: DiskURLCache.Reason?
        if disk != nil {
            if entry.metadata.placement != .memoryAndDisk || entry.body.count > disk?.largestEntry ?? 0 {
                eraseBelow(key) {
                    $0.metadata.varyKey == varyKey
                } onDisk: {
                    $0.remove(key, variant: varyKey)
                }
            } else if !insertIntoBuffer(entry, for: key, isInMemory: isKept) {
                eraseBelow(key) {
                    $0.metadata.varyKey == varyKey
                } onDisk: {
                    $0.remove(key, variant: varyKey)
                }
                reason = .diskTooSlow
            }
        }
        let isFirst = isFirst(of: key)
        memory.update(key) { current in
            guard isKept || current != nil else { return nil }
            // An entry without `Vary` answers every request: nothing older could win over it.
            var record =
                entry.answersEveryRequest
                ? MemoryRecord([], isComplete: true) : current ?? MemoryRecord([], isComplete: isFirst)
            record.insert(isKept ? entry : nil, for: varyKey)
            return record.variants.isEmpty ? nil : (record, record.cost)
        }
        return reason
    }

    /// Whether nothing but what is being stored is known of a key: no layer below has another variant.
    private func isFirst(of key: RequestKey) -> Bool {
        buffer.entries(of: key).count <= 1 && disk?.mayContain(key) != true && fallbacks.isEmpty
    }

    /// False where the disk does not keep up.
    private func insertIntoBuffer(_ entry: StoredEntry, for key: RequestKey, isInMemory: Bool) -> Bool {
        // Half of the limit, and once the caller was slowed down the whole.
        var share = 0.5
        var waitsUntil = DispatchTime.now() + 0.004
        while true {
            switch buffer.insert(entry, for: key, isInMemory: isInMemory, share: share) {
            case .inserted(let isFirst, let isPressing):
                if isFirst || isPressing { maintenance.schedule(after: isPressing ? 0 : Self.drainDelay) }
                return true
            case .full:
                maintenance.schedule(after: 0)
                // The maintenance queue cannot wait for itself.
                guard !maintenance.isCurrent else {
                    buffer.stopWaiting()
                    return false
                }
                if buffer.waitForRoom(until: waitsUntil) { continue }
                if share == 1 { return false }
                share = 1
                waitsUntil = .now() + 2
            }
        }
    }

    /// Seconds between a store and its writing: long enough to write a burst as one batch.
    static let drainDelay = 0.02

    // MARK: Updating

    /// Gives the stored entry with that number other metadata, its body unchanged: the head that a 304 brought, or a pin.
    /// Returns the entry's new metadata; nil where that very entry is not stored any more, and then nothing is changed.
    ///
    /// - Parameter change: is given the metadata as they are stored.
    @discardableResult
    func update(_ number: UInt64, of key: RequestKey, _ change: (inout EntryMetadata) -> Void) -> EntryMetadata? {
        stripe(of: key).withLock { _ in
            disk?.lookNow()
            let start = history.next
            guard let variant = lookup(key).variants().first(where: { $0.metadata.sequence == number }) else {
                return nil
            }
            var metadata = variant.metadata
            change(&metadata)
            metadata.sequence = sequence.next(at: metadata.storedAt)
            guard updateBelow(variant, of: key, metadata, since: start) else {
                memory.update(key) { record in
                    guard var record else { return nil }
                    record.replace(number, by: nil)
                    return record.variants.isEmpty ? nil : (record, record.cost)
                }
                return nil
            }
            memory.update(key) { record in
                guard var record else { return nil }
                record.replace(number, with: metadata)
                return (record, record.cost)
            }
            weakResponses.remove(key)
            return metadata
        }
    }

    /// False where the layers below do not have the variant any more.
    /// - Parameter start: the number of the next removal when the variant was looked up.
    private func updateBelow(
        _ variant: StoredVariant, of key: RequestKey, _ metadata: EntryMetadata, since start: UInt64
    ) -> Bool {
        let sequence = variant.metadata.sequence
        let now = MonotonicTime.nanoseconds
        guard let disk, metadata.placement == .memoryAndDisk else { return true }
        if let entry = variant.entry,
            buffer.replace(sequence, of: key, by: StoredEntry(metadata: metadata, body: entry.body))
        {
            return true
        }
        // The entry may be on its way to the disk at this moment.
        writing.withLock { _ in }
        let isUpdated = disk.update(metadata, of: key, replacing: sequence, usedAt: now)
        // Another process may have removed it just now, and not have found the new record.
        disk.lookNow()
        if history.concerns(key, metadata, since: start) {
            if isUpdated { disk.remove(key, sequence: metadata.sequence) }
            return false
        }
        if isUpdated { return true }
        // Evicted, or never written (a full disk): memory has it whole, and may store it anew.
        guard let entry = variant.entry, variant.layer == .memory else { return variant.layer == .fallback }
        return insertIntoBuffer(StoredEntry(metadata: metadata, body: entry.body), for: key, isInMemory: true)
    }
}

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
    func append(_ data: Data, to body: inout IncomingBody?) -> DiskURLCache.Reason? {
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
            disk.evictIfNeeded()
        }
        guard disk.isOverCapacity else { return true }
        return !disk.isOwner
    }

    /// Stores a response whose body has arrived whole, as `store` does with one in memory.
    func store(
        _ metadata: EntryMetadata, _ body: IncomingBody, for key: RequestKey, ticket: StoreTicket?
    ) -> DiskURLCache.Reason? {
        let length = body.count
        let reason = stripe(of: key).withLock { _ -> DiskURLCache.Reason? in
            disk?.lookNow()
            var metadata = metadata
            metadata.sequence = sequence.next(at: metadata.storedAt)
            if let reason = prepare(&metadata, for: key, ticket) { return reason }
            return adopt(body, metadata, for: key, ticket)
        }
        tellStored(metadata, bytes: length, unless: reason)
        body.discard()
        updateReserved()
        return reason
    }

    /// With the key's stripe held.
    private func adopt(
        _ body: IncomingBody, _ metadata: EntryMetadata, for key: RequestKey, _ ticket: StoreTicket?
    ) -> DiskURLCache.Reason? {
        guard let disk = diskStore else { return .diskFailed(errno: 0) }
        let varyKey = metadata.varyKey
        let start = history.next
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
            return result
        }
        buffer.drop(buffered)
        // A removal by another process that began meanwhile may not have found the record.
        disk.lookNow()
        if history.concerns(key, metadata, since: start) {
            disk.remove(key, sequence: metadata.sequence)
            return .removedMeanwhile
        }
        switch result {
        case nil: return .removedMeanwhile
        // What was stored before stays, as far as it can.
        case .dropped(.failed(let errno))?: return .diskFailed(errno: errno)
        case .dropped(.unavailable)?: return .diskFailed(errno: 0)
        case .dropped(let reason)?:
            removeFromMemory(key) { $0.varyKey == varyKey }
            return DiskURLCache.Reason(reason)
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
