import Foundation

extension DiskStore {
    /// Stages an entry; it replaces that of the same key and variant. Returns at once unless much is staged: above half of
    /// `pendingByteLimit` the caller is slowed down, by a few milliseconds at most, since the disk takes tens of them for a
    /// file now and then; at the limit it waits for the disk, and after `backlogTimeout` the entry is given up.
    ///
    /// An entry that is refused takes the older one of its key and variant with it: what was replaced is never served again.
    ///
    /// - Parameter isPatient: false where the caller is not to wait: the entry is staged above the limit.
    func store(_ entry: StoredEntry, for key: DiskKey, isPatient: Bool = true) {
        if configuration.isReadOnly { return }
        let varyHash = entry.metadata.varyHash
        let largest = state.withLock { entryLimit($0.capacity) }
        if entry.metadata.isMemoryOnly {
            return removeVariant(key, varyHash)
        }
        if entry.body.count > largest || largest == 0 {
            removeVariant(key, varyHash)
            return tell(.dropped(key: key.digest, .tooLarge))
        }
        // Half of the limit, and once the caller was slowed down the limit.
        var limit = isPatient ? configuration.pendingByteLimit / 2 : .max
        var wasSlowedDown = false
        var waitsUntil: DispatchTime?
        while true {
            switch stage(entry, for: key, varyHash, limit: limit) {
            case .staged(let isFirst, let isPressing):
                if isFirst || isPressing {
                    maintenance.schedule(after: isPressing ? 0 : configuration.maintenanceDelay, keeping: self)
                }
                return
            case .closed: return tell(.dropped(key: key.digest, .unavailable))
            case .full:
                let until = waitsUntil ?? .now() + Self.slowingDown
                waitsUntil = until
                maintenance.schedule(after: 0, keeping: self)
                // The maintenance queue cannot wait for itself.
                let isOver = maintenance.isCurrent || room.wait(timeout: until) == .timedOut
                state.withLock { $0.waiters -= 1 }
                guard isOver else { continue }
                if wasSlowedDown {
                    removeVariant(key, varyHash)
                    return tell(.dropped(key: key.digest, .backlog))
                }
                wasSlowedDown = true
                limit = configuration.pendingByteLimit
                waitsUntil = .now() + configuration.backlogTimeout
            }
        }
    }

    /// So much is staged that whoever stores is held up.
    var isBehind: Bool { state.withLock { $0.staged.bytes > configuration.pendingByteLimit / 2 } }

    private static let slowingDown = 0.004

    func entryLimit(_ capacity: Int) -> Int {
        capacity.share(configuration.maximumEntryShare)
    }

    private enum Staging {
        case staged(isFirst: Bool, isPressing: Bool)
        case full
        case closed
    }

    private func stage(_ entry: StoredEntry, for key: DiskKey, _ varyHash: UInt64, limit: Int) -> Staging {
        state.withLock { state in
            if state.isClosed { return .closed }
            // An entry above the limit goes through alone.
            let fits = state.staged.bytes + StagedWrites.weight(of: entry) <= limit
            guard fits || state.staged.isEmpty else {
                state.waiters += 1
                return .full
            }
            state.staged.insert(entry, for: key, varyHash: varyHash)
            defer { state.isPassScheduled = true }
            return .staged(
                isFirst: !state.isPassScheduled, isPressing: state.staged.bytes > configuration.pendingByteLimit / 4)
        }
    }

    func signalRoom() {
        let waiters = state.withLock { $0.waiters }
        for _ in 0..<waiters { room.signal() }
    }

    // MARK: Writing

    /// Writes everything that is staged. On the maintenance queue.
    func writeStaged() {
        while true {
            // Prepared before the lock is taken: summing a large body takes a while.
            guard let write = state.withLock({ $0.staged.next() }) else { return }
            var record = PreparedRecord(write.entry, for: write.key, keepsURL: configuration.keepsURLs)
            withIO { self.write(&record, write, &$0) }
            if state.withLock({ $0.waiters }) > 0 { signalRoom() }
            if isOverCapacity { evict() }
        }
    }

    private func write(_ record: inout PreparedRecord?, _ write: StagedWrites.Write, _ io: inout IOState) {
        defer { state.withLock { $0.staged.finish(write) } }
        let digest = write.key.digest
        // Removed while it waited for the lock.
        guard state.withLock({ $0.staged.isPlanned(write) }) else { return }
        // Taken, not copied: its head is completed in place.
        let isRepresentable = record != nil
        guard var record = record.take(), let length = record.header.recordLength,
            length <= state.withLock({ entryLimit($0.capacity) })
        else {
            io.events.append(.dropped(key: digest, isRepresentable ? .tooLarge : .notRepresentable))
            removeRecords(write.key, &io) { $0.varyHash == UInt32(truncatingIfNeeded: write.varyHash) }
            return
        }
        do throws(Errno) {
            let allocated = try place(&record, &io)
            let row = IndexRow(record.header, allocated: allocated, accessedAt: clock.now().recordSeconds)
            let replaced = state.withLock { state in
                defer { state.index.insert(row) }
                return state.index.rows(of: digest).filter { $0.varyHash == row.varyHash && $0.slot != row.slot }
            }
            for old in replaced where remove(RecordName(digest: digest, slot: old.slot), &io) {
                state.withLock { _ = $0.index.remove(digest, old.slot) }
                io.pending.append(JournalRow(kind: .remove, row: old))
            }
            io.pending.append(JournalRow(kind: .store, row: row))
            io.events.append(.stored(key: digest, bytes: allocated))
        } catch {
            io.events.append(.dropped(key: digest, .failed(errno: error.code)))
        }
    }

    /// Writes the record into a free slot of its key, and notes the slot in its header; gives what it takes on disk.
    private func place(_ record: inout PreparedRecord, _ io: inout IOState) throws(Errno) -> Int {
        let digest = record.header.digest
        let (isAuthoritative, known) = state.withLock { ($0.isAuthoritative, $0.index.rows(of: digest)) }
        if !isAuthoritative || known.contains(where: \.isPartial) { examine(digest, &io) }
        /// Slots where a file was in the way.
        var taken: UInt8 = 0
        var isRetrying = false
        while true {
            record.header.slot = try freeSlot(of: digest, not: taken, replacing: record.header.varyHash, &io)
            do throws(Errno) {
                return try writer.write(&record)
            } catch {
                switch error.code {
                case EEXIST where taken.nonzeroBitCount < Int(RecordName.slots):
                    // Another process was here.
                    taken |= 1 << record.header.slot
                    examine(digest, &io)
                case ENOENT where !isRetrying && prepareDirectory(&io, mayMake: true):
                    // The folder went under our hands, and is there again.
                    isRetrying = true
                default: throw error
                }
            }
        }
    }

    private func freeSlot(
        of digest: KeyDigest, not taken: UInt8, replacing varyHash: UInt64, _ io: inout IOState
    ) throws(Errno) -> UInt8 {
        let rows = state.withLock { $0.index.rows(of: digest) }
        let used = rows.reduce(taken) { $0 | 1 << $1.slot }
        if let slot = Self.firstFree(used | io.freed[digest, default: 0]) { return slot }
        if io.freed[digest] != nil {
            save(&io)
            io.freed[digest] = nil
            if let slot = Self.firstFree(used) { return slot }
        }
        // All slots hold variants: the one used longest ago makes room, unless it is the one to be replaced, which must
        // outlive a failure of the new one.
        let others = rows.filter { $0.varyHash != UInt32(truncatingIfNeeded: varyHash) && taken & 1 << $0.slot == 0 }
        guard let oldest = others.min(by: { $0.accessedAt < $1.accessedAt }),
            remove(RecordName(digest: digest, slot: oldest.slot), &io)
        else { throw Errno(EEXIST) }
        state.withLock { _ = $0.index.remove(digest, oldest.slot) }
        io.pending.append(JournalRow(kind: .remove, row: oldest))
        io.events.append(.evicted(key: digest, bytes: oldest.bytes))
        return oldest.slot
    }

    private static func firstFree(_ used: UInt8) -> UInt8? {
        used == .max ? nil : UInt8((~used).trailingZeroBitCount)
    }
}
