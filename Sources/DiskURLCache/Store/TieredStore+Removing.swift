import Foundation

// Removals. Each is first noted for answers that arrive later, and then made on disk and in memory. A removal of a key
// holds the key's stripe, one of everything all stripes.

extension TieredStore {
    /// Removes the stored responses of a key, all its variants.
    func remove(_ key: RequestKey) {
        stripe(of: key).withLock { _ in
            removals.note(resource: key.resource, of: key.name, at: now)
            disk?.remove(key)
            for key in [key, key.held(forHead: false), key.held(forHead: true)] { memory.removeValue(for: key) }
            weakResponses.removeValue(for: key)
        }
    }

    /// Removes one variant.
    /// - Parameters:
    ///   - metadata: the metadata that were found. If an older answer has freshened or replaced the entry since, it is
    ///     removed, too.
    ///   - ticket: the ticket of the load whose answer removes it; nil if there is none.
    func remove(_ key: RequestKey, _ metadata: EntryMetadata, by ticket: StoreTicket? = nil) {
        stripe(of: key).withLock { _ in
            if let ticket { removals.note(resource: key.resource, asOf: ticket) }
            let stored = lookup(key).variants().first { $0.metadata.varyKey == metadata.varyKey }?.metadata
            if let stored, stored.sequence != metadata.sequence {
                guard let ticket, let response = stored.http, response.requestTime <= ticket.askedAt else { return }
            }
            // A variant that is not found may be there all the same: perhaps its record cannot be read at this moment.
            erase(key, metadata.varyKey)
        }
    }

    /// The time of the clock that gives responses their times.
    var now: Date { clock.now() }

    /// Removes one variant from all layers. The key's stripe is held.
    func erase(_ key: RequestKey, _ varyKey: VaryKey) {
        disk?.remove(key, variant: varyKey)
        memory.update(key) { $0?.removeAll { $0.metadata.varyKey == varyKey } }
        weakResponses.removeValue(for: key)
        takeUnwritten(key) { $0.varyKey == varyKey }
    }

    /// Removes the responses of a URL, whatever else is in their keys. Visits only what it removes.
    /// - Parameter uri: the URL in its canonical spelling.
    func remove(uri: String) {
        let resource = KeyName.resource(of: uri)
        stripe(ofResource: resource).withLock { _ in
            removals.note(resource: resource, uri: uri, at: now)
            disk?.remove(matching: EntryCriteria(uri: uri))
            // A different URL may have the same hash.
            forget(resource: resource) { $0.uri == uri }
        }
    }

    /// Removes the entry with a number.
    /// - Parameter record: its record; nil if it is in memory only.
    /// - Returns: false if it was removed or replaced meanwhile.
    func remove(_ number: UInt64, ofResource resource: UInt64, in record: RecordName?) -> Bool {
        stripe(ofResource: resource).withLock { _ in
            var inMemory: (key: RequestKey, isForDisk: Bool)?
            memory.update(resource: resource) { key, record in
                let variant = record?.variants.first { $0.metadata.sequence == number }
                if let variant { inMemory = (key, variant.metadata.placement == .memoryAndDisk) }
            }
            if let record {
                switch diskStore?.removeRecord(record, sequence: number) {
                case .removed?: break
                // It may have been evicted just now.
                case .notThere? where inMemory != nil: break
                case .notThere?, .kept?, nil: return false
                }
            } else if let inMemory {
                // It may be on disk all the same: the folder could not be listed, or its record could not be read.
                if inMemory.isForDisk { diskStore?.remove(inMemory.key, sequence: number) }
            } else {
                return false
            }
            memory.update(resource: resource) { _, record in
                record?.removeAll { $0.metadata.sequence == number }
            }
            weakResponses.update(resource: resource) { _, response in
                if response?.metadata.sequence == number { response = nil }
            }
            // Without the time: what else the resource has on disk stays.
            removals.note(resource: resource)
            return true
        }
    }

    /// Removes the matching entries from all layers. It holds no lock while it reads the heads of records, so that
    /// stores and lookups continue. When it returns, all matching entries that were stored before the call are removed;
    /// those stored meanwhile may stay.
    func remove(matching criteria: EntryCriteria) {
        // From now on no older answer is stored, and no matching entry is changed, so that no 304 writes it again.
        let number = removals.begin(matching: criteria, at: now)
        defer { removals.end(number) }
        // Changes that began before are complete now, and are found.
        for stripe in stripes { stripe.withLock { _ in } }
        // An answer on its way takes over the tags of the response that it replaces. It finds that one, or this note.
        let note: (UInt64) -> Void = { if !criteria.tags.isEmpty { self.removals.note(resource: $0) } }
        disk?.remove(matching: criteria, willRemove: note)
        updateMemory(matching: criteria) { key, record in
            note(key.resource)
            record?.removeAll { criteria.matches(key, $0.metadata) }
        }
    }

    /// Changes the records in memory that have a matching entry, and drops the weak responses that match. Those that
    /// are not concerned are asked, and not copied.
    private func updateMemory(matching criteria: EntryCriteria, _ change: (RequestKey, inout MemoryRecord?) -> Void) {
        memory.update(
            of: criteria.resource,
            where: { key, record in record.variants.contains { criteria.matches(key, $0.metadata) } }, change)
        weakResponses.update(of: criteria.resource, where: { criteria.matches($0, $1.metadata) }, { $1 = nil })
    }

    /// Marks the matching entries of all layers as stale: each is validated before it is used again, as one whose
    /// lifetime is over. The mark is in the record, so it outlives the process. Holds no lock while it reads the heads
    /// of records. An answer that was asked for before is not stored.
    func markStale(matching criteria: EntryCriteria, at time: Date) {
        // From now on no older answer is stored, and an entry that is changed meanwhile gets the mark by that change.
        let number = removals.begin(markingStale: criteria, since: time)
        defer { removals.end(number) }
        // Changes that began before are complete now, and are found.
        for stripe in stripes { stripe.withLock { _ in } }
        disk?.markStale(matching: criteria, at: time)
        let late = markUnwritten(matching: criteria, at: time)
        updateMemory(matching: criteria) { key, record in
            record?.markStale(
                at: time, where: { criteria.matches(key, $0.metadata) },
                isOnDisk: { disk != nil && $0.placement == .memoryAndDisk && !late.contains($0.sequence) })
        }
    }

    func removeAll() {
        holdingAllStripes {
            removals.noteEverything(at: now)
            disk?.removeAll()
            removeMemory()
        }
        // So that a process that ends now, for example after a log-out, leaves nothing behind.
        diskStore?.sweepAfterClearing()
    }

    /// Empties memory for the app. No change brings back what it has read before.
    func emptyMemory() { holdingAllStripes { removeMemory() } }

    /// Empties memory.
    func removeMemory() {
        memory.removeAll()
        weakResponses.removeAll()
    }

    /// Empties the disk. Memory is not changed.
    func removeDisk() {
        holdingAllStripes {
            disk?.removeAll()
            unwritten.withLock { $0 = [:] }
            memory.updateAll { $1?.leaveDisk() }
            weakResponses.updateAll { $1 = $1?.offDisk }
        }
        diskStore?.sweepAfterClearing()
    }

    /// With 0, nothing is left on disk when this returns, unless another cache owns the directory.
    func setDiskCapacity(_ capacity: Int) {
        disk?.capacity = capacity
        guard capacity == 0, let diskStore else { return }
        // Just after the start the cache does not know yet that it owns the directory.
        diskStore.check(mayMake: false)
        if diskStore.isOwner { removeDisk() }
    }

    /// Empties memory. Responses that the app still holds can be found.
    func relieveMemory() {
        memory.updateAll { key, record in
            // Only if it is the only variant: one of several would not be enough to answer for the key.
            if let record, record.isComplete, record.variants.count == 1, let entry = record.variants[0].entry,
                let response = entry.presentedResponse
            {
                // Under the shard's lock, so that a removal comes either before this, or finds it.
                weakResponses.update(key) { $0 = WeakResponse(metadata: entry.metadata, response: response) }
            }
            record = nil
        }
        // Drops those that were released since.
        weakResponses.updateAll { _, _ in }
    }

    private func forget(resource: UInt64, where isForgotten: (RequestKey) -> Bool) {
        memory.update(resource: resource) { if isForgotten($0) { $1 = nil } }
        weakResponses.update(resource: resource) { if isForgotten($0) { $1 = nil } }
    }

    // MARK: Locks

    func stripe(of key: RequestKey) -> Mutex<Void> { stripe(ofResource: key.resource) }

    /// One for all keys of a resource.
    private func stripe(ofResource resource: UInt64) -> Mutex<Void> {
        stripes[Int(resource % UInt64(stripes.count))]
    }

    /// Takes the stripes in order, so that two such changes cannot deadlock.
    private func holdingAllStripes(_ body: () -> Void) {
        func lock(_ index: Int) {
            guard index < stripes.count else { return body() }
            stripes[index].withLock { _ in lock(index + 1) }
        }
        lock(0)
    }
}

// Changes by other caches of the directory.

extension TieredStore {
    /// Drops responses from memory that other caches have removed or replaced. It takes no stripe and may be called
    /// while one is held. A response that is stored after the removal stays, since each store looks for removals first.
    /// A response that is being stored meanwhile is removed by its own store.
    func apply(_ changes: [DirectoryChange]) {
        let changes = changes.contains(.removedAll) ? [.removedAll] : Set(changes)
        for change in changes {
            removals.note(change)
            if let resource = change.resource {
                forget(resource: resource) { change.concerns($0.name) || $0.isHeld }
            } else {
                removeMemory()
            }
        }
    }
}
