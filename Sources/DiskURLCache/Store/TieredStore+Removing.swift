import Foundation

// Removals: each is noted for answers that will arrive later, and then made on disk and in memory. Each of a key holds
// its stripe, and one of everything all stripes.

extension TieredStore {
    /// Removes the stored responses of a key, all its variants.
    func remove(_ key: RequestKey) {
        for key in key.isForHead ? [key, key.storedForHead] : [key] {
            stripe(of: key).withLock { _ in
                removals.note(resource: key.resource, at: now)
                disk?.remove(key)
                memory.removeValue(for: key)
                weakResponses.removeValue(for: key)
            }
        }
    }

    /// Removes one variant.
    /// - Parameters:
    ///   - metadata: as they were found. An older answer may have freshened or replaced the entry since, and that one
    ///     says no more than the entry did.
    ///   - ticket: of the load whose answer removes it; nil if no answer does.
    func remove(_ key: RequestKey, _ metadata: EntryMetadata, by ticket: StoreTicket? = nil) {
        stripe(of: key).withLock { _ in
            if let ticket { removals.note(resource: key.resource, asOf: ticket) }
            let isStored = lookup(key).variants().contains { variant in
                let stored = variant.metadata
                guard stored.varyKey == metadata.varyKey else { return false }
                if stored.sequence == metadata.sequence { return true }
                guard let ticket, let response = stored.http else { return false }
                return response.requestTime <= ticket.askedAt
            }
            if isStored { erase(key, metadata.varyKey) }
        }
    }

    /// Of the clock that gives responses their times.
    var now: Date { diskStore?.clock.now() ?? .distantPast }

    /// Removes one variant from all layers, with the key's stripe held.
    func erase(_ key: RequestKey, _ varyKey: VaryKey) {
        disk?.remove(key, variant: varyKey)
        memory.update(key) { $0?.removeAll { $0.metadata.varyKey == varyKey } }
        weakResponses.removeValue(for: key)
    }

    /// Removes the responses of a URL, whatever else their keys hold. Costs what it removes.
    /// - Parameters:
    ///   - uri: in its canonical spelling.
    ///   - ticket: of the load whose answer removes them; nil if no answer does.
    func remove(uri: String, by ticket: StoreTicket? = nil) {
        let resource = KeyName.resource(of: uri)
        stripes[Int(resource % UInt64(stripes.count))].withLock { _ in
            removals.note(resource: resource, by: ticket, at: now)
            disk?.remove(matching: EntryCriteria(resource: resource))
            // A different URL may have the same number.
            forget(resource: resource) { $0.uri == uri }
        }
    }

    /// Removes what matches from all layers. Holds no lock while it reads the heads of records: stores and lookups go
    /// on. What was stored before it began is gone when it returns; what is stored meanwhile may stay.
    func remove(matching criteria: EntryCriteria) {
        // From here on no older answer is stored, and nothing that matches is changed: no 304 writes it again.
        let number = removals.begin(matching: criteria, at: now)
        defer { removals.end(number) }
        // What began to change before is done, and is found.
        for stripe in stripes { stripe.withLock { _ in } }
        disk?.remove(matching: criteria)
        memory.updateAll { key, record in record?.removeAll { criteria.matches(key, $0.metadata) } }
        weakResponses.updateAll { key, response in
            if response.map({ criteria.matches(key, $0.metadata) }) == true { response = nil }
        }
    }

    func removeAll() {
        holdingAllStripes {
            removals.noteEverything(at: now)
            disk?.removeAll()
            removeMemory()
        }
        // So that a process which ends next, as after a log-out, leaves nothing behind.
        diskStore?.sweepAfterClearing()
    }

    /// Empties memory.
    func removeMemory() {
        memory.removeAll()
        weakResponses.removeAll()
    }

    /// Empties the disk; memory keeps what it has.
    func removeDisk() {
        holdingAllStripes {
            disk?.removeAll()
            // The variants that memory knows to lie on disk are gone.
            memory.updateAll { $1?.removeAll { $0.entry == nil } }
        }
        diskStore?.sweepAfterClearing()
    }

    /// With 0 nothing is left on disk when it returns, unless another cache owns the directory.
    func setDiskCapacity(_ capacity: Int) {
        disk?.capacity = capacity
        if capacity == 0, diskStore?.isOwner == true { removeDisk() }
    }

    /// Empties memory, but what the app still holds of it can be found.
    func relieveMemory() {
        memory.updateAll { key, record in
            // A lone response answers for its key; of several variants one alone would say too little.
            if let record, record.isComplete, record.variants.count == 1, let entry = record.variants[0].entry,
                let response = entry.presentedResponse
            {
                // With the shard's lock held, so that a removal comes before this or finds it.
                weakResponses.update(key) { $0 = WeakResponse(metadata: entry.metadata, response: response) }
            }
            record = nil
        }
        // Most of them are released by now.
        weakResponses.updateAll { _, _ in }
    }

    private func forget(resource: UInt64, where isForgotten: (RequestKey) -> Bool) {
        memory.update(resource: resource) { if isForgotten($0) { $1 = nil } }
        weakResponses.update(resource: resource) { if isForgotten($0) { $1 = nil } }
    }

    // MARK: Locks

    func stripe(of key: RequestKey) -> Mutex<Void> { stripes[key.stripe(of: stripes.count)] }

    /// Takes the stripes in their order, so that two such changes cannot wait for each other.
    private func holdingAllStripes(_ body: () -> Void) {
        func lock(_ index: Int) {
            guard index < stripes.count else { return body() }
            stripes[index].withLock { _ in lock(index + 1) }
        }
        lock(0)
    }
}

// Changes by other caches on the directory.

extension TieredStore {
    /// Drops responses from memory that other caches removed or stored. Takes no stripe, and may be called with one
    /// held. A response that is stored after the removal stays: each store looks first. A response that is stored
    /// meanwhile is taken back by its store.
    func apply(_ changes: [DirectoryChange]) {
        let changes = changes.contains(.removedAll) ? [.removedAll] : Set(changes)
        for change in changes {
            if change.isRemoval { removals.note(change) }
            if let resource = change.resource {
                forget(resource: resource) { change.concerns($0.name) }
            } else {
                removeMemory()
            }
        }
    }
}
