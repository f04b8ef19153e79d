import Foundation

// Stores and updates. Each holds the stripe of its key.

extension TieredStore {
    // MARK: Storing

    /// What became of a response that was to be stored.
    private enum Outcome {
        /// The disk has it; memory, too, unless it is too large.
        case stored
        /// - Parameter reason: why the disk refused it; nil if it was not for the disk.
        case storedInMemory(DiskURLCache.Reason?)
        /// Another cache stored a later response of the same variant meanwhile, which stays.
        case superseded
        /// The response that it would have replaced is gone, unless the disk failed.
        case refused(DiskURLCache.Reason)
    }

    /// Stores a response, which replaces the one with the same variant. When this returns, its record is complete on
    /// disk, and every lookup finds it. Returns the reason if it is not stored: then the response that it would have
    /// replaced is gone, unless that one is newer or the disk failed. If the disk fails, memory keeps the response, and
    /// an event says so.
    ///
    /// - Parameters:
    ///   - file: a file that has the body already, and becomes the record.
    ///   - metadata: their sequence number is given here, where calls for one key are in order. `storeLater` has given
    ///     it already, when the response came into memory.
    ///   - presented: the object that the caller stored, if it holds what only memory can keep.
    ///   - ticket: of a load that asked the network: what was removed since then is not stored.
    ///   - keepsPin: it stays pinned if the response that it replaces was: nothing says whether it is.
    @discardableResult
    func store(
        _ metadata: EntryMetadata, _ body: Body, in file: IncomingBody? = nil, presented: CachedURLResponse? = nil,
        for key: RequestKey, ticket: StoreTicket? = nil, keepsPin: Bool = true
    ) -> DiskURLCache.Reason? {
        let bytes = body.count
        // What is removed from now on is not stored.
        let start = ticket ?? ticketOfStore(at: metadata.storedAt)
        // An older record of a cache that came unseen would come back, once memory drops the response.
        if ticket != nil, metadata.placement != .memoryAndDisk { disk?.checkNow() }
        let file = file ?? writtenAhead(body, metadata)
        let outcome = stripe(of: key).withLock { _ -> Outcome in
            // Asked before the disk has the response.
            let isFirst = isUnknownBelow(key)
            var metadata = metadata
            if metadata.sequence == 0 {
                metadata.sequence = sequence.next(at: metadata.storedAt)
            } else if let unwritten = takeUnwritten(key, where: { $0.isSameResponse(as: metadata) }) {
                // It may have been marked since, which has changed its number, too.
                metadata = unwritten
                if case .mark(let time) = removals.underWay(key, metadata) { _ = metadata.markStale(at: time) }
            } else {
                // A pin, say, has come since, and has brought the response to the disk; or it was replaced.
                let isKept = inMemory(key).contains { $0.isSameResponse(as: metadata) }
                return isKept ? .stored : .refused(.removedMeanwhile)
            }
            let refusal = prepare(
                &metadata, for: key, isFirst: isFirst, isAnswer: ticket != nil, keepsPin, since: start)
            if let refusal { return .refused(refusal) }
            let outcome = put(metadata, body, file, presented, for: key, isFirst: isFirst)
            let (isRemoved, isStoredElsewhere) = removals.afterStore(of: key, metadata, since: start)
            if isRemoved {
                erase(key, metadata.varyKey)
                return .refused(.removedMeanwhile)
            }
            // It may be replaced on disk already, and memory was told of that before it had this one.
            if isStoredElsewhere, case .stored = outcome {
                memory.update(key) { $0?.insert(nil, for: metadata.varyKey) }
            }
            return outcome
        }
        file?.discard()
        // The event and its URL are made only if the app listens.
        let url = { metadata.foundationURL }
        let isInMemoryOnly: Bool
        switch outcome {
        case .stored: isInMemoryOnly = false
        case .storedInMemory(let reason):
            if let reason { hub.emit(.notStored(url: url(), reason: reason)) }
            isInMemoryOnly = true
        case .superseded:
            hub.emit(.notStored(url: url(), reason: .removedMeanwhile))
            return .removedMeanwhile
        case .refused(let reason):
            hub.emit(.notStored(url: url(), reason: reason))
            return reason
        }
        hub.count { $0.stores += 1 }
        hub.emit(.stored(url: url(), bytes: bytes, inMemoryOnly: isInMemoryOnly))
        if let diskStore { _ = hasRoom(diskStore) }
        return nil
    }

    /// Bodies above this length are written before the key's stripe is taken, in bytes. A shorter one is written
    /// together with the tail that makes the file a record, by the same system call, which takes some microseconds.
    private static let longestUnderStripe = 128 << 10

    /// A long body in memory that is for the disk is written into a file of its own before the stripe is taken, so that
    /// no removal has to wait for it. Nil if the body is short, or if that fails: then it is written from memory.
    private func writtenAhead(_ body: Body, _ metadata: EntryMetadata) -> IncomingBody? {
        guard case .memory(let data) = body, data.count > Self.longestUnderStripe,
            metadata.placement == .memoryAndDisk, let diskStore, data.count <= diskStore.largestEntry
        else { return nil }
        do throws(Errno) {
            let file = try diskStore.beginIncoming()
            if file.reserve(data.count, isAll: true) { _ = hasRoom(diskStore) }
            try file.append(data)
            return file
        } catch {
            return nil
        }
    }

    /// Taken when a load asks the network. A cache that is alone does not look for others then: if one has come and
    /// removed the response before, that is read later, and the answer is not stored, which leads to a miss.
    func ticket(at now: Date) -> StoreTicket {
        disk?.checkIfShared()
        return removals.ticket(at: now)
    }

    /// The ticket of a response that its caller stores now. What others removed before is read first, so that the
    /// response, which comes after the removal, is not removed with it.
    private func ticketOfStore(at now: Date) -> StoreTicket {
        disk?.checkNow()
        return removals.ticket(at: now)
    }

    /// Gives the response the app's tags of the one that it replaces: a request without tags takes no entry out of
    /// reach of a removal. The groups of the server are those of the new response. What the app has pinned stays
    /// pinned. Returns the reason if the answer is out of date already: a newer one is stored, or it was removed
    /// meanwhile.
    /// - Parameters:
    ///   - isFirst: nothing of the key is in the layers below memory.
    ///   - isAnswer: it is the answer to a load, which has a time at which it was asked for.
    private func prepare(
        _ metadata: inout EntryMetadata, for key: RequestKey, isFirst: Bool, isAnswer: Bool, _ keepsPin: Bool,
        since start: StoreTicket
    ) -> DiskURLCache.Reason? {
        let rivals = rivals(of: metadata, of: key, isFirst: isFirst)
        if isAnswer {
            if isOlder(metadata, than: rivals) { return .removedMeanwhile }
            // The whole may have come after the request for a part.
            let replacesWhole = metadata.isPart && rivals.contains { $0.varyKey == metadata.varyKey && !$0.isPart }
            if replacesWhole { return .partialContent }
        }
        // Before it is asked what was removed or marked: that may have been by one of these tags.
        takeOver(from: rivals, keepsPin, &metadata)
        switch removals.change(of: key, metadata, since: start) {
        case .removal:
            erase(key, metadata.varyKey)
            return .removedMeanwhile
        // One that memory had already when it was marked has the mark itself; what is not HTTP is never marked.
        case .mark where isAnswer && metadata.http.map { $0.staleSince == nil } == true: return .removedMeanwhile
        case .mark, .none: break
        }
        return nil
    }

    /// Gives the response the tags of those that it replaces, and their pin.
    private func takeOver(from rivals: [EntryMetadata], _ keepsPin: Bool, _ metadata: inout EntryMetadata) {
        for other in rivals where other.varyKey == metadata.varyKey {
            if keepsPin, other.isPinned { metadata.isPinned = true }
            if other.tags.isEmpty { continue }
            metadata.tags = metadata.tags.joined(withTags: other.tags.lazy.filter { !CacheGroups.isGroup($0) })
        }
    }

    /// Whether a load asked later, whose answer is there: a request that both answer must get the newer answer (RFC
    /// 9111 §4). A part answers no request for the whole, which is kept though it may be the older one. Unless the
    /// clock was set back since: a response from the future keeps nothing out.
    private func isOlder(_ metadata: EntryMetadata, than rivals: [EntryMetadata]) -> Bool {
        let asked = metadata.http?.requestTime ?? .distantFuture
        return rivals.contains { other in
            guard let time = other.http?.requestTime, metadata.isPart || !other.isPart else { return false }
            return time > asked && time <= now
        }
    }

    /// Keeps an answer that may not be stored in memory, beside what is stored for its key: until the app lets its URL
    /// be asked again (`CacheCore.heldAnswer`).
    func hold(_ metadata: EntryMetadata, _ body: Data, for key: RequestKey, ticket: StoreTicket) {
        let held = key.held(forHead: key.isForHead)
        stripe(of: key).withLock { _ in
            var metadata = metadata
            guard !isOlder(metadata, than: inMemory(held)), removals.change(of: held, metadata, since: ticket) == .none
            else { return }
            metadata.sequence = sequence.next(at: metadata.storedAt)
            let entry = StoredEntry(metadata: metadata, body: body)
            keep(entry.memoryCost <= largestMemoryEntry ? entry : nil, metadata, for: held, isFirst: true)
        }
    }

    private func inMemory(_ key: RequestKey) -> [EntryMetadata] {
        memory.value(for: key)?.variants.map(\.metadata) ?? []
    }

    /// The stored responses that may answer a request which a new response answers: those of its variant, and those
    /// with other fields in `Vary`. Those of its variant are of the first layer that has any.
    private func rivals(of metadata: EntryMetadata, of key: RequestKey, isFirst: Bool) -> [EntryMetadata] {
        let varyKey = metadata.varyKey
        // One that is written late is in memory itself.
        let known = inMemory(key).filter { $0.varyKey.overlaps(varyKey) && !$0.isSameEntry(as: metadata) }
        // The disk may have one that memory has evicted, or that another process has stored.
        guard !known.contains(where: { $0.varyKey == varyKey }), !isFirst, let disk, disk.mayContain(key) else {
            return known
        }
        return known + disk.variants(of: key).map(\.metadata).filter { $0.varyKey.overlaps(varyKey) }
    }

    /// The disk and then memory get the response, or lose the one that it would have replaced.
    private func put(
        _ metadata: EntryMetadata, _ body: Body, _ file: IncomingBody?, _ presented: CachedURLResponse?,
        for key: RequestKey, isFirst: Bool
    ) -> Outcome {
        let isForDisk = metadata.placement == .memoryAndDisk && body.count <= disk?.largestEntry ?? -1
        let whole = entry(metadata, body, isForDisk: isForDisk, presented)
        let entry = whole.flatMap { $0.memoryCost <= largestMemoryEntry ? $0 : nil }
        // A change does not look for its record on disk.
        func keepOffDisk() { keep(entry?.offDisk, metadata, for: key, isFirst: isFirst) }
        guard isForDisk else {
            disk?.remove(key, variant: metadata.varyKey)
            keepOffDisk()
            guard entry != nil else { return .refused(.tooLarge(bytes: body.count, limit: largestStorableBody)) }
            return .storedInMemory(nil)
        }
        switch write(metadata, file, whole, for: key) {
        case .written:
            keep(entry, metadata, for: key, isFirst: isFirst)
            return .stored
        case .superseded:
            keep(nil, metadata, for: key, isFirst: isFirst)
            return .superseded
        case .dropped(let reason):
            guard entry != nil else {
                // If the disk failed, the older response stays.
                if reason != .diskFailed { keep(nil, metadata, for: key, isFirst: isFirst) }
                return .refused(reason)
            }
            keepOffDisk()
            return .storedInMemory(reason)
        }
    }

    /// - Parameter entry: nil if memory keeps no entry of the variant.
    private func keep(_ entry: StoredEntry?, _ metadata: EntryMetadata, for key: RequestKey, isFirst: Bool) {
        memory.update(key) { record in
            // An entry without `Vary` answers every request: nothing older could win over it.
            if let entry, record == nil || entry.answersEveryRequest {
                record = MemoryRecord(isComplete: isFirst || entry.answersEveryRequest)
            }
            record?.insert(entry, for: metadata.varyKey)
            keepWithinMemory(&record)
        }
        weakResponses.removeValue(for: key)
        takeUnwritten(key) { $0.varyKey == metadata.varyKey }
    }

    /// The response with its body in memory; nil if the body stays in its file.
    private func entry(
        _ metadata: EntryMetadata, _ body: Body, isForDisk: Bool, _ presented: CachedURLResponse?
    ) -> StoredEntry? {
        switch body {
        case .memory(let data): return StoredEntry(metadata: metadata, body: data, presented: presented)
        case .file(let open):
            // The delegate or `Configuration.willCacheResponse` may have kept the response off the disk meanwhile.
            guard !isForDisk, open.count <= largestMemoryEntry, let data = open.contents else { return nil }
            return StoredEntry(metadata: metadata, body: data)
        }
    }

    /// - Parameter entry: nil if only the file has the body.
    private func write(
        _ metadata: EntryMetadata, _ file: IncomingBody?, _ entry: StoredEntry?, for key: RequestKey
    ) -> DiskWriteResult {
        let now = MonotonicTime.nanoseconds
        let result: DiskWriteResult?
        switch (file, entry) {
        case (nil, let entry?): result = disk?.write(entry, for: key, usedAt: now)
        case (let file?, let entry?): result = diskStore?.write(entry, in: file, for: key, usedAt: now)
        case (let file?, nil): result = diskStore?.adopt(file, metadata, for: key, usedAt: now)
        case (nil, nil): result = nil
        }
        return result ?? .dropped(.diskFailed(errno: 0))
    }

    /// Whether the response was removed since its load asked for it, or since its store began. If so, nothing of its
    /// variant stays. It may be on disk already, since another cache may not have found it there. Or the removal was of
    /// another key of the resource: then an older response must not outlive the one that would have replaced it.
    private func erasesIfRemoved(_ metadata: EntryMetadata, of key: RequestKey, since start: StoreTicket) -> Bool {
        guard removals.wasRemoved(key, metadata, since: start) else { return false }
        erase(key, metadata.varyKey)
        return true
    }

    // MARK: Updating

    /// Replaces the metadata of a stored entry, for the head that a 304 brought, a tag or a pin; its body stays.
    /// - Parameters:
    ///   - found: the metadata of the entry when it was found.
    ///   - ticket: of a load whose answer confirms the response: what was removed or marked stale since it asked the
    ///     network is not changed.
    ///   - change: is given the metadata as they are stored.
    /// - Returns: the new metadata; nil if that response is not stored any more, and then nothing is changed.
    @discardableResult
    func update(
        _ found: EntryMetadata, of key: RequestKey, ticket: StoreTicket? = nil,
        _ change: (inout EntryMetadata) -> Void
    ) -> EntryMetadata? {
        stripe(of: key).withLock { _ in
            let updated = updateOnce(found, of: key, ticket: ticket, change)
            // The record may have got a mark, or the change of another process, since it was found. Then that one is
            // changed. A 304 is not for it.
            return updated == nil && ticket == nil ? updateOnce(found, of: key, ticket: nil, change) : updated
        }
    }

    private func updateOnce(
        _ found: EntryMetadata, of key: RequestKey, ticket: StoreTicket?, _ change: (inout EntryMetadata) -> Void
    ) -> EntryMetadata? {
        disk?.checkIfShared()
        let start = removals.ticket(at: .distantPast)
        let variants = lookup(key).variants()
        guard let variant = variants.first(where: { $0.metadata.isSameResponse(as: found) }) else { return nil }
        if let ticket, removals.change(of: key, variant.metadata, since: ticket) != .none { return nil }
        let old = variant.metadata
        var metadata = old
        let underWay = removals.underWay(key, metadata)
        if underWay == .removal {
            erase(key, metadata.varyKey)
            return nil
        }
        change(&metadata)
        if ticket == nil {
            metadata.revise()
        } else {
            let latest = variants.map(\.metadata.sequence).max() ?? old.sequence
            metadata.sequence = sequence.next(at: metadata.storedAt, after: latest)
        }
        if case .mark(let time) = underWay { _ = metadata.markStale(at: time) }
        let isUpdated = updateBelow(variant, of: key, metadata, since: start, isConfirmed: ticket != nil)
        memory.update(key) { record in
            if isUpdated, record == nil, metadata.placement != .memoryAndDisk, let entry = variant.entry {
                // Memory has dropped it meanwhile, or before, and the app holds it.
                record = MemoryRecord(
                    variants: [StoredVariant(entry.with(metadata), from: .memory)], isComplete: variants.count == 1)
            } else if isUpdated {
                record?.replace(old, with: metadata)
            } else {
                record?.replace(old, by: nil)
            }
        }
        weakResponses.removeValue(for: key)
        takeUnwritten(key) { $0.isSameResponse(as: old) }
        return isUpdated && !erasesIfRemoved(metadata, of: key, since: start) ? metadata : nil
    }

    /// False if the layers below do not have the variant any more, so that memory must not have it either.
    /// - Parameter isConfirmed: whether the origin has just said that the response is still right.
    private func updateBelow(
        _ variant: StoredVariant, of key: RequestKey, _ metadata: EntryMetadata, since start: StoreTicket,
        isConfirmed: Bool
    ) -> Bool {
        guard let disk, metadata.placement == .memoryAndDisk else { return true }
        let now = MonotonicTime.nanoseconds
        if disk.update(metadata, of: key, replacing: variant.metadata, usedAt: now) { return true }
        // The disk has evicted the entry, or could not write it. Memory has the whole entry.
        guard let entry = variant.entry, variant.layer == .memory else { return variant.layer == .fallback }
        disk.checkNow()
        if removals.wasRemoved(key, metadata, since: start) { return false }
        // Its file is not written again: another cache may be removing the entry at this moment, and would not find
        // what is written after its removal. No look shows that: its last row may still come. It takes the entry out
        // of memory. What the disk is still to write was never there to be removed.
        if diskStore != nil, !isUnwritten(variant.metadata, of: key) { return isConfirmed }
        // Another process has put a later response into the app's storage.
        let isSuperseded =
            diskStore == nil
            && disk.variants(of: key).contains {
                $0.metadata.varyKey == variant.metadata.varyKey && $0.metadata.sequence > variant.metadata.sequence
            }
        if isSuperseded { return false }
        return disk.write(entry.with(metadata), for: key, usedAt: now) != .superseded
    }
}

// A store that the system waits for: it is in memory at once, and on disk later.

extension TieredStore {
    /// Stores a response in memory at once, and on disk by the maintenance queue, which a flush waits for. If the
    /// response is removed or replaced before that, its file is not written.
    func storeLater(
        _ metadata: EntryMetadata, _ body: Data, presented: CachedURLResponse?, for key: RequestKey, keepsPin: Bool
    ) {
        let ticket = ticketOfStore(at: metadata.storedAt)
        // The file gets the number that memory has, so that a lookup takes the two for the same response.
        let numbered = stripe(of: key).withLock { _ in
            var metadata = metadata
            metadata.sequence = sequence.next(at: metadata.storedAt)
            // What only the disk has is asked when the file is written.
            takeOver(from: inMemory(key), keepsPin, &metadata)
            let entry = StoredEntry(metadata: metadata, body: body, presented: presented)
            keep(entry.memoryCost <= largestMemoryEntry ? entry : nil, metadata, for: key, isFirst: false)
            unwritten.withLock { $0[key, default: []].append(metadata) }
            return metadata
        }
        maintenance.enqueue { [self] in
            store(numbered, .memory(body), presented: presented, for: key, ticket: ticket, keepsPin: keepsPin)
        }
    }

    /// Whether a response is in memory, and its file is still to be written.
    private func isUnwritten(_ metadata: EntryMetadata, of key: RequestKey) -> Bool {
        unwritten.withLock { $0[key]?.contains { $0.isSameResponse(as: metadata) } == true }
    }

    /// Marks responses as stale whose files are still to be written: their files get the mark.
    /// - Returns: their old numbers. Memory gives its copies the same new ones.
    func markUnwritten(matching criteria: EntryCriteria, at time: Date) -> Set<UInt64> {
        unwritten.withLock { unwritten in
            var numbers: Set<UInt64> = []
            for (key, late) in unwritten {
                for place in late.indices where criteria.matches(key, late[place]) {
                    numbers.insert(late[place].sequence)
                    _ = unwritten[key]?[place].markStale(at: time)
                }
            }
            return numbers
        }
    }

    /// No file of such responses of a key is to be written any more. The stripe of the key is held.
    /// - Returns: the metadata of the first one; nil if there was none.
    @discardableResult
    func takeUnwritten(_ key: RequestKey, where isTaken: (EntryMetadata) -> Bool) -> EntryMetadata? {
        unwritten.withLock { unwritten in
            guard let found = unwritten[key] else { return nil }
            let rest = found.filter { !isTaken($0) }
            unwritten[key] = rest.isEmpty ? nil : rest
            return found.first(where: isTaken)
        }
    }
}
