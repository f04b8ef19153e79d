import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// Removals. Each holds the stripe of its key, or all of them.

extension TieredStore {
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
    func erase(_ key: RequestKey, varyKey: VaryKey) {
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
    func eraseBelow(
        _ key: RequestKey, where isRemoved: (StoredEntry) -> Bool, onDisk erase: (any StorageLayer) -> Void
    ) {
        let cancelled = buffer.cancel(key, where: isRemoved)
        // What is being written at this moment is erased with the rest.
        writing.withLock { _ in }
        if let disk { erase(disk) }
        buffer.drop(cancelled)
    }

    /// Removes what matches from all layers. What is removed by its resource alone costs what it removes.
    /// - Parameter ticket: of the load whose answer removes it; nil where no answer does.
    func remove(matching criteria: EntryCriteria, by ticket: StoreTicket? = nil) {
        let remove = {
            self.history.note(.matching(criteria, by: ticket?.number))
            let cancelled = self.buffer.cancelAll { criteria.matches($0, $1.metadata) }
            self.writing.withLock { _ in }
            // The older versions of what is buffered may not match, and are not to come back.
            for write in cancelled { self.disk?.remove(write.key, variant: write.entry.metadata.varyKey) }
            self.disk?.remove(matching: criteria)
            self.buffer.drop(cancelled)
            self.memory.updateAll { key, record in
                var record = record
                record.removeAll { criteria.matches(key, $0.metadata) }
                return record.variants.isEmpty ? nil : (record, record.cost)
            }
            self.weakResponses.removeAll()
        }
        if let resource = criteria.resource {
            stripes[Int(resource % UInt64(stripes.count))].withLock { _ in remove() }
        } else {
            holdingAllStripes(remove)
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

// What other caches on the directory changed.

extension TieredStore {
    /// Two loads and a comparison, but once a second.
    @inline(__always)
    func lookIfDue(at now: UInt64) {
        if let disk, disk.isLookDue(at: now) { disk.lookIfDue(at: now) }
    }

    /// Drops from memory and from the buffer what other caches removed, and from memory what they stored. Takes no stripe, and may be
    /// called with one held; not with `writing` held. What is stored after the removal stays: each store looks first.
    func apply(_ changes: [DirectoryChange]) {
        let changed = ForeignChanges(changes)
        for change in changed.removals { history.note(change == .removedAll ? .everything : .changed(change)) }
        let cancelled = changed.removals.isEmpty ? [] : buffer.cancelAll { key, _ in changed.remove(key) }
        // What is being written at this moment is erased with the rest.
        if !cancelled.isEmpty { writing.withLock { _ in } }
        // Its older versions may not be among what was removed, and are not to come back.
        for write in cancelled {
            if let diskStore {
                diskStore.removeReplaced(by: write.entry, of: write.key)
            } else {
                disk?.remove(write.key, variant: write.entry.metadata.varyKey)
            }
        }
        buffer.drop(cancelled)
        memory.updateAll { key, record in
            guard changed.concern(key) else { return (record, record.cost) }
            _ = buffer.noteAlone(key)
            return nil
        }
        weakResponses.removeAll()
        updateReserved()
    }
}

/// What other caches changed, put together so that each entry is looked at once.
private struct ForeignChanges {
    /// Each once.
    let removals: Set<DirectoryChange>
    private let stored: Set<DirectoryChange>

    init(_ changes: [DirectoryChange]) {
        if changes.contains(.removedAll) {
            (removals, stored) = ([.removedAll], [])
            return
        }
        stored = Set(changes.filter { if case .stored = $0 { true } else { false } })
        removals = Set(changes).subtracting(stored)
    }

    func remove(_ key: RequestKey) -> Bool {
        if removals.isEmpty { return false }
        if removals.contains(.removedAll) { return true }
        let name = key.name
        return removals.contains(.removed(name)) || removals.contains(.removedResource(name.resource))
    }

    func concern(_ key: RequestKey) -> Bool {
        remove(key) || (!stored.isEmpty && stored.contains(.stored(key.name)))
    }
}
