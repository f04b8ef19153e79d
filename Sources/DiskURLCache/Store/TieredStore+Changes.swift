import Dispatch
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// What changes the store. Each change holds the stripe of its key.

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
    ) -> CacheNotStoredReason? {
        let reason = stripe(of: key).withLock { _ -> CacheNotStoredReason? in
            // What comes after the removal is not to go with it.
            takeRemovalsNow()
            var metadata = metadata
            metadata.sequence = sequence.next(at: metadata.storedAt)
            let entry = StoredEntry(metadata: metadata, body: body, presented: presented)
            if let ticket, let reason = outdated(metadata, for: key, ticket) { return reason }
            let limit = largestStorableBody
            guard entry.body.count <= limit else {
                erase(key, varyKey: entry.metadata.varyKey)
                return .tooLarge(bytes: entry.body.count, limit: limit)
            }
            return place(entry, for: key)
        }
        tellStored(metadata, bytes: body.count, unless: reason)
        updateReserved()
        return reason
    }

    /// - Parameter reason: why it was not stored.
    func tellStored(_ metadata: EntryMetadata, bytes: Int, unless reason: CacheNotStoredReason?) {
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
        takeRemovalsNow()
        return history.ticket(at: now)
    }

    /// Why an answer that was under way meanwhile is not stored any more.
    func outdated(_ metadata: EntryMetadata, for key: RequestKey, _ ticket: StoreTicket) -> CacheNotStoredReason? {
        if history.concerns(key, metadata, since: ticket.removal, ticket: ticket.number) { return .removedMeanwhile }
        // Another load that asked later has stored its answer already.
        guard let asked = metadata.http?.requestTime else { return nil }
        let varyKey = metadata.varyKey
        var others = (memory.value(for: key)?.variants ?? []).map(\.metadata)
        others += buffer.entries(of: key).map(\.metadata)
        others.removeAll { $0.varyKey != varyKey }
        // Memory may have evicted it, and another process may have stored it.
        if others.isEmpty, disk?.mayContain(key) == true {
            others = (disk?.variants(of: key) ?? []).map(\.metadata).filter { $0.varyKey == varyKey }
        }
        return others.contains { $0.http.map { $0.requestTime > asked } == true } ? .removedMeanwhile : nil
    }

    /// With the key's stripe held.
    private func place(_ entry: StoredEntry, for key: RequestKey) -> CacheNotStoredReason? {
        weakResponses.remove(key)
        let varyKey = entry.metadata.varyKey
        let isKept = entry.memoryCost <= largestMemoryEntry
        var reason: CacheNotStoredReason?
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
        let folder = diskStore?.folderIdentity()
        // Half of the limit, and once the caller was slowed down the whole.
        var share = 0.5
        var waitsUntil = DispatchTime.now() + 0.004
        while true {
            switch buffer.insert(entry, for: key, folder: folder, isInMemory: isInMemory, share: share) {
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
            takeRemovalsNow()
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
        // Another process may have removed it just now, and not have found what was written anew meanwhile.
        takeRemovalsNow()
        if history.concerns(key, metadata, since: start) {
            if isUpdated { disk.remove(key, sequence: metadata.sequence) }
            return false
        }
        if isUpdated { return true }
        // Evicted, or never written (a full disk): memory has it whole, and may store it anew.
        guard let entry = variant.entry, variant.layer == .memory else { return variant.layer == .fallback }
        return insertIntoBuffer(StoredEntry(metadata: metadata, body: entry.body), for: key, isInMemory: true)
    }

    // MARK: Removal

    /// Removes what is stored of a key, all its variants.
    func remove(_ key: RequestKey) {
        for key in key.isForHead ? [key, key.storedForHead] : [key] {
            stripe(of: key).withLock { _ in
                history.note(.key(key))
                eraseBelow(key) { _ in
                    true
                } onDisk: {
                    $0.remove(key)
                }
                memory.removeValue(for: key)
                weakResponses.remove(key)
            }
        }
        updateReserved()
    }

    /// Removes one variant.
    /// - Parameters:
    ///   - metadata: as they were found.
    ///   - ticket: of the load whose answer removes it; nil where no answer does.
    func remove(_ key: RequestKey, _ metadata: EntryMetadata, by ticket: StoreTicket? = nil) {
        stripe(of: key).withLock { _ in
            if let ticket { history.note(.superseded(key, asked: ticket.number)) }
            let sequence = ticket.map { successor(of: metadata, for: key, before: $0) } ?? metadata.sequence
            // What is buffered stands before an older version of its variant on disk, which is not to come back.
            let buffered = buffer.entries(of: key).first { $0.metadata.sequence == sequence }?.metadata.varyKey
            eraseBelow(key) {
                $0.metadata.sequence == sequence
            } onDisk: { layer in
                if let buffered {
                    layer.remove(key, variant: buffered)
                } else {
                    layer.remove(key, sequence: sequence)
                }
            }
            removeFromMemory(key) { $0.sequence == sequence }
        }
        updateReserved()
    }

    /// The number of the entry by now: an older answer may have freshened or replaced it since it was found, and that one says no
    /// more than it did.
    private func successor(of metadata: EntryMetadata, for key: RequestKey, before ticket: StoreTicket) -> UInt64 {
        let stored = lookup(key).variants().map(\.metadata)
        if stored.contains(where: { $0.sequence == metadata.sequence }) { return metadata.sequence }
        let successor = stored.first { other in
            other.varyKey == metadata.varyKey && other.http.map { $0.requestTime <= ticket.askedAt } == true
        }
        return successor?.sequence ?? metadata.sequence
    }

    /// Removes the variant that an entry would have replaced, with the key's stripe held.
    private func erase(_ key: RequestKey, varyKey: VaryKey) {
        eraseBelow(key) {
            $0.metadata.varyKey == varyKey
        } onDisk: {
            $0.remove(key, variant: varyKey)
        }
        removeFromMemory(key) { $0.varyKey == varyKey }
    }

    func removeFromMemory(_ key: RequestKey, where isRemoved: (EntryMetadata) -> Bool) {
        memory.update(key) { record in
            guard var record else { return nil }
            record.removeAll { isRemoved($0.metadata) }
            return record.variants.isEmpty ? nil : (record, record.cost)
        }
        weakResponses.remove(key)
    }

    /// Erases the layers below memory: what is buffered is seen by lookups until the disk has nothing older any more.
    private func eraseBelow(
        _ key: RequestKey, where isRemoved: (StoredEntry) -> Bool, onDisk erase: (any StorageLayer) -> Void
    ) {
        let cancelled = buffer.cancel(key, where: isRemoved)
        // What is being written at this moment is erased with the rest.
        writing.withLock { _ in }
        if let disk { erase(disk) }
        buffer.drop(cancelled)
    }

    /// Removes what matches from all layers.
    /// - Parameter ticket: of the load whose answer removes it; nil where no answer does.
    func remove(matching criteria: EntryCriteria, by ticket: StoreTicket? = nil) {
        holdingAllStripes {
            history.note(.matching(criteria, by: ticket?.number))
            let cancelled = buffer.cancelAll { criteria.matches($0, $1.metadata) }
            writing.withLock { _ in }
            // The older versions of what is buffered may not match, and are not to come back.
            for write in cancelled { disk?.remove(write.key, variant: write.entry.metadata.varyKey) }
            disk?.remove(matching: criteria)
            buffer.drop(cancelled)
            memory.updateAll { key, record in
                var record = record
                record.removeAll { criteria.matches(key, $0.metadata) }
                return record.variants.isEmpty ? nil : (record, record.cost)
            }
            weakResponses.removeAll()
        }
        updateReserved()
    }

    func removeAll() {
        holdingAllStripes {
            history.note(.everything)
            let cancelled = buffer.cancelAll()
            writing.withLock { _ in }
            disk?.removeAll()
            buffer.drop(cancelled)
            memory.removeAll()
            weakResponses.removeAll()
        }
        updateReserved()
    }

    /// Empties memory; the disk gets what it does not have yet.
    func removeMemory() {
        holdingAllStripes {
            memory.updateAll { key, _ in
                _ = buffer.noteAlone(key)
                return nil
            }
            weakResponses.removeAll()
        }
        updateReserved()
    }

    /// Empties the disk; memory keeps what it has.
    func removeDisk() {
        holdingAllStripes {
            let cancelled = buffer.cancelAll()
            writing.withLock { _ in }
            disk?.removeAll()
            buffer.drop(cancelled)
            // What memory knows to lie on disk is gone.
            memory.updateAll { _, record in
                var record = record
                record.removeAll { $0.entry == nil }
                return record.variants.isEmpty ? nil : (record, record.cost)
            }
        }
        updateReserved()
    }

    /// Empties memory, but what the app still holds of it can be found.
    func relieveMemory() {
        holdingAllStripes {
            memory.forEachValue { key, record in
                // A lone response answers for its key; of several variants one alone would say too little.
                guard record.isComplete, record.variants.count == 1, let entry = record.variants[0].entry,
                    let response = entry.presentedResponse
                else { return }
                weakResponses.add(response, entry.metadata, for: key)
            }
            memory.updateAll { key, _ in
                _ = buffer.noteAlone(key)
                return nil
            }
        }
        weakResponses.removeReleased()
        updateReserved()
    }

    // MARK: Locks

    func stripe(of key: RequestKey) -> Mutex<Void> { stripes[key.stripe(of: stripes.count)] }

    /// Takes the stripes in their order, so that two such changes cannot wait for each other.
    private func holdingAllStripes(_ body: () -> Void) {
        func take(_ index: Int) {
            guard index < stripes.count else { return body() }
            stripes[index].withLock { _ in take(index + 1) }
        }
        take(0)
    }

    /// Memory and what is buffered keep to one limit together.
    func updateReserved() {
        let bytes = buffer.aloneBytes
        if memory.reserved != bytes { memory.reserved = bytes }
    }
}

extension EntryCriteria {
    func matches(_ key: RequestKey, _ metadata: EntryMetadata) -> Bool {
        matches(metadata, uriHash: key.uriHash, hostHash: key.hostHash)
    }
}
