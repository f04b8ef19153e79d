import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A body that has arrived whole.
package enum ArrivedBody: Sendable {
    case memory(Data)
    /// No memory layer takes it: its file becomes the record.
    case file(IncomingBody)

    var count: Int {
        switch self {
        case .memory(let data): data.count
        case .file(let file): file.count
        }
    }
}

// Stores and updates. Each holds the stripe of its key.

extension TieredStore {
    // MARK: Storing

    /// Stores a response, which replaces the one with the same variant. When this returns, its record is complete on
    /// disk, and every lookup finds it. Returns the reason if it is not stored: then the response that it would have
    /// replaced is gone, unless that one is newer or the disk failed. If the disk fails, memory keeps the response, and
    /// an event says so.
    ///
    /// - Parameters:
    ///   - metadata: their sequence number is given here, where calls for one key are in order.
    ///   - presented: the object that the caller stored, if it holds what only memory can keep.
    ///   - ticket: of a load that asked the network: what was removed since then is not stored.
    ///   - isList: it is no response, but a list of the cache's own (`VariationList`): no event tells of it.
    @discardableResult
    func store(
        _ metadata: EntryMetadata, _ body: ArrivedBody, presented: CachedURLResponse? = nil, for key: RequestKey,
        ticket: StoreTicket? = nil, isList: Bool = false
    ) -> DiskURLCache.Reason? {
        let bytes = body.count
        let (refusal, isStored) = stripe(of: key).withLock { _ -> (DiskURLCache.Reason?, isStored: Bool) in
            // A response that comes after the removal is not to go with it.
            disk?.checkNow()
            let start = ticket?.removal ?? history.next
            var metadata = metadata
            metadata.sequence = sequence.next(at: metadata.storedAt)
            if let reason = prepare(&metadata, for: key, ticket) { return (reason, false) }
            let result = put(metadata, body, presented, for: key)
            return withdraws(metadata, of: key, since: start, ticket) ? (.removedMeanwhile, false) : result
        }
        if case .file(let file) = body { file.discard() }
        // An event is made if an app listens, and so is its URL.
        if let refusal { hub.emit(.notStored(url: metadata.foundationURL, reason: refusal)) }
        guard isStored else { return refusal }
        let isInMemoryOnly = metadata.placement != .memoryAndDisk || refusal != nil
        if !isList {
            hub.count { $0.stores += 1 }
            hub.emit(.stored(url: metadata.foundationURL, bytes: bytes, inMemoryOnly: isInMemoryOnly))
        }
        if let diskStore { _ = hasRoom(diskStore) }
        return nil
    }

    /// To be taken when the network is asked.
    func ticket(at now: Date) -> StoreTicket {
        disk?.checkNow()
        return history.ticket(at: now)
    }

    /// Gives the response the app's tags of the one that it replaces: a request without tags takes no entry out of
    /// reach of a removal. The groups of the server are those of the new response. Returns why an answer that was
    /// asked for before is not stored any more.
    private func prepare(
        _ metadata: inout EntryMetadata, for key: RequestKey, _ ticket: StoreTicket?
    ) -> DiskURLCache.Reason? {
        let replaced = replaced(by: metadata.varyKey, of: key)
        if let ticket {
            let asked = metadata.http?.requestTime ?? .distantFuture
            // The other load asked later, and has stored its answer already.
            let isOlder = replaced.contains { $0.http.map { $0.requestTime > asked } == true }
            if isOlder || history.concerns(key, metadata, since: ticket.removal, ticket: ticket.number) {
                return .removedMeanwhile
            }
        }
        for other in replaced where !other.tags.isEmpty {
            metadata.tags = metadata.tags.joined(withTags: other.tags.lazy.filter { !CacheGroups.isGroup($0) })
        }
        return nil
    }

    /// The stored responses of one variant, in the first layer that has any.
    private func replaced(by varyKey: VaryKey, of key: RequestKey) -> [EntryMetadata] {
        let known = memory.value(for: key)?.variants.map(\.metadata).filter { $0.varyKey == varyKey } ?? []
        // Memory may have evicted it, and another process may have stored it.
        guard known.isEmpty, let disk, disk.mayContain(key) else { return known }
        return disk.variants(of: key).map(\.metadata).filter { $0.varyKey == varyKey }
    }

    /// The disk and then memory get the response, or lose the one that it would have replaced.
    /// - Returns: why a layer refused the response, and whether another one has it.
    private func put(
        _ metadata: EntryMetadata, _ body: ArrivedBody, _ presented: CachedURLResponse?, for key: RequestKey
    ) -> (DiskURLCache.Reason?, isStored: Bool) {
        let isForDisk = metadata.placement == .memoryAndDisk && body.count <= disk?.largestEntry ?? -1
        // Asked before the disk has the response.
        let isFirst = isUnknownBelow(key)
        let entry = entry(metadata, body, isForDisk: isForDisk, presented)
        var kept = entry.flatMap { $0.memoryCost <= largestMemoryEntry ? $0 : nil }
        var refusal: DiskURLCache.Reason?
        if isForDisk {
            switch write(metadata, body, entry, for: key) {
            case .written: break
            // A different cache stored a later response of the variant.
            case .superseded: kept = nil
            case .dropped(let reason): refusal = reason
            }
            // The response before it stays, as far as it can.
            if kept == nil, refusal == .diskFailed { return (refusal, false) }
        } else {
            if kept == nil { refusal = .tooLarge(bytes: body.count, limit: largestStorableBody) }
            disk?.remove(key, variant: metadata.varyKey)
        }
        memory.update(key) { record in
            // An entry without `Vary` answers every request: nothing older could win over it.
            if let kept, record == nil || kept.answersEveryRequest {
                record = MemoryRecord(isComplete: isFirst || kept.answersEveryRequest)
            }
            record?.insert(kept, for: metadata.varyKey)
        }
        weakResponses.removeValue(for: key)
        return (refusal, kept != nil || refusal == nil)
    }

    /// The response with its body in memory; nil if the body stays in its file.
    private func entry(
        _ metadata: EntryMetadata, _ body: ArrivedBody, isForDisk: Bool, _ presented: CachedURLResponse?
    ) -> StoredEntry? {
        switch body {
        case .memory(let data): return StoredEntry(metadata: metadata, body: data, presented: presented)
        case .file(let file):
            // The delegate or `Configuration.willCacheResponse` may have kept the response off the disk meanwhile.
            guard !isForDisk, file.count <= largestMemoryEntry, let data = file.opening.contents else { return nil }
            return StoredEntry(metadata: metadata, body: data)
        }
    }

    private func write(
        _ metadata: EntryMetadata, _ body: ArrivedBody, _ entry: StoredEntry?, for key: RequestKey
    ) -> DiskWriteResult {
        let now = MonotonicTime.nanoseconds
        if let entry, let disk { return disk.write(entry, for: key, usedAt: now) }
        guard case .file(let file) = body, let diskStore else { return .dropped(.diskFailed(errno: 0)) }
        return diskStore.adopt(file, metadata, for: key, usedAt: now)
    }

    /// Removes what was just stored where another cache removed it meanwhile, perhaps without having found it; false
    /// otherwise.
    /// - Parameter start: the number of the next removal before the response was stored, or when it was asked for.
    private func withdraws(
        _ metadata: EntryMetadata, of key: RequestKey, since start: UInt64, _ ticket: StoreTicket? = nil
    ) -> Bool {
        disk?.checkNow()
        guard history.concerns(key, metadata, since: start, ticket: ticket?.number ?? 0) else { return false }
        erase(key, metadata.varyKey)
        return true
    }

    // MARK: Updating

    /// Gives the stored entry with that number other metadata, its body unchanged: the head that a 304 brought, or a
    /// pin. Returns the entry's new metadata; nil if that very entry is not stored any more, and then nothing is
    /// changed.
    ///
    /// - Parameter change: is given the metadata as they are stored.
    @discardableResult
    func update(_ number: UInt64, of key: RequestKey, _ change: (inout EntryMetadata) -> Void) -> EntryMetadata? {
        stripe(of: key).withLock { _ in
            disk?.checkNow()
            let start = history.next
            guard let variant = lookup(key).variants().first(where: { $0.metadata.sequence == number }) else {
                return nil
            }
            var metadata = variant.metadata
            change(&metadata)
            metadata.sequence = sequence.next(at: metadata.storedAt)
            let isUpdated = updateBelow(variant, of: key, metadata)
            memory.update(key) { record in
                if isUpdated { record?.replace(number, with: metadata) } else { record?.replace(number, by: nil) }
            }
            weakResponses.removeValue(for: key)
            return isUpdated && !withdraws(metadata, of: key, since: start) ? metadata : nil
        }
    }

    /// False if the layers below do not have the variant any more.
    private func updateBelow(_ variant: StoredVariant, of key: RequestKey, _ metadata: EntryMetadata) -> Bool {
        guard let disk, metadata.placement == .memoryAndDisk else { return true }
        let now = MonotonicTime.nanoseconds
        if disk.update(metadata, of: key, replacing: variant.metadata.sequence, usedAt: now) { return true }
        // Evicted, or never written (a full disk): memory has it whole, and stores it again.
        guard let entry = variant.entry, variant.layer == .memory else { return variant.layer == .fallback }
        return disk.write(StoredEntry(metadata: metadata, body: entry.body), for: key, usedAt: now) != .superseded
    }
}

// Bodies that are written to disk while they arrive. They are in no memory layer: each becomes a record when it is
// whole.

extension TieredStore {
    /// Bodies up to this length are gathered in memory, in bytes.
    static let gatheringLimit = 1 << 20

    /// Whether a large body may be left on disk: there is a disk layer of ours, and it takes what memory takes. An
    /// app's own storage gets whole bodies.
    var acceptsIncoming: Bool {
        guard let diskStore, diskStore.isOpeningProcess else { return false }
        return diskStore.largestEntry >= max(largestMemoryEntry, Self.gatheringLimit)
    }

    /// A file without a name, for the part of a body that its client has not taken yet. Nobody else can open it, and it
    /// is gone when the last reader has closed it.
    func makeUnlinkedFile() throws(Errno) -> IncomingBody {
        let file: IncomingBody
        if let own = try? diskStore?.beginIncoming() {
            file = own
        } else {
            let folder = DiskPaths(directory: NSTemporaryDirectory())
            file = try IncomingBody(SystemFiles(), folder, space: IncomingSpace(), locks: false)
        }
        file.discard()
        return file
    }

    /// Writes the next piece, the first one into a file that it makes, and makes room for it before. Returns the reason
    /// if that cannot be done. From one thread at a time.
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

    /// The directory keeps to its capacity: above it a pass evicts at once, and when stores run an eighth ahead of the
    /// passes, the thread that stores waits for one. False if that made no room. A cache that does not maintain the
    /// directory leaves that to the one that does.
    private func hasRoom(_ disk: DiskStore) -> Bool {
        let excess = disk.excess
        guard excess > 0 else { return true }
        guard excess > disk.capacity / 8 else {
            maintenance.schedule(after: 0)
            return true
        }
        maintenance.perform {
            noteUses()
            disk.evictIfNeeded()
        }
        return disk.excess <= disk.capacity / 8 || !disk.isOwner
    }
}
