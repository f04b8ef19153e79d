import Foundation

/// Keeping the directory within its capacity, and what is too old out of it.
extension DiskStore {
    /// What the directory takes on disk: records, folders and index files.
    private func footprint(_ io: IOState) -> Int {
        state.withLock { $0.index.bytes } + io.overhead
    }

    var isOverCapacity: Bool {
        withIO { io in footprint(io) > state.withLock { $0.capacity } }
    }

    /// Evicts from above the capacity down to the low-water mark; only the maintainer does. `now`: even if it hardly worked
    /// a moment ago.
    func evict(now: Bool = false) {
        let (isDue, capacity) = withIO { io in
            let capacity = state.withLock { $0.capacity }
            let isRested = now || MonotonicTime.seconds >= io.nextEviction
            return (io.isMaintainer && footprint(io) > capacity && isRested, capacity)
        }
        if isDue { evict(downTo: capacity.share(configuration.lowWaterFraction)) }
    }

    /// Evicts the least recently used records until no more than `target` bytes are taken. A record that cannot be unlinked
    /// is passed over; when many in a row cannot, the directory is at fault, and eviction rests for a while.
    func evict(downTo target: Int) {
        let pinnedLimit = state.withLock { $0.capacity.share(configuration.pinnedShare) }
        var passedOver = withIO { $0.stuck }
        var failures = 0
        while failures < 16 {
            let victims = withIO { io in
                let excess = footprint(io) - target
                return state.withLock { state in
                    EvictionPolicy(pinnedLimit: pinnedLimit, passedOver: passedOver)
                        .victims(in: state.index, freeing: excess)
                }
            }
            if victims.isEmpty { break }
            for victim in victims where failures < 16 {
                if evict(victim) {
                    failures = 0
                } else {
                    passedOver.insert(RecordName(digest: victim.digest, slot: victim.slot))
                    failures += 1
                }
            }
        }
        withIO { io in
            if failures >= 16 {
                io.nextEviction = MonotonicTime.seconds + 1
            } else if passedOver.count < 1024 {
                io.stuck = passedOver
            }
        }
        compactFolderIfEmpty(target)
    }

    /// False when the record cannot be unlinked.
    private func evict(_ victim: IndexRow) -> Bool {
        withIO { io in
            // Removed or replaced meanwhile.
            guard state.withLock({ $0.index.row(victim.digest, victim.slot) })?.isSameRecord(as: victim) == true
            else { return true }
            guard remove(RecordName(digest: victim.digest, slot: victim.slot), &io) else { return false }
            state.withLock { _ = $0.index.remove(victim.digest, victim.slot) }
            io.pending.append(JournalRow(kind: .remove, row: victim))
            io.events.append(.evicted(key: victim.digest, bytes: victim.bytes))
            return true
        }
    }

    /// Folders do not shrink when files go. One that alone takes more than all may take is replaced.
    private func compactFolderIfEmpty(_ target: Int) {
        withIO { io in
            guard footprint(io) > target, io.overhead > 64 << 10, state.withLock({ $0.index.count == 0 }) else {
                return
            }
            clear(&io)
            updateOverhead(&io)
        }
    }

    /// Removes what exceeds the maximum ages.
    func removeExpired() {
        let storageAge = configuration.maximumStorageAge
        let accessAge = configuration.maximumAccessAge
        guard storageAge != nil || accessAge != nil else { return }
        let now = clock.now().timeIntervalSince1970
        let expired = state.withLock { state in
            var rows: [IndexRow] = []
            state.index.forEachLeastRecentFirst { row in
                let isTooOld = !row.isPartial && storageAge.map { now - Double(row.storedAt) > $0 + 1 } ?? false
                let isUnused = accessAge.map { now - Double(row.accessedAt) > $0 + 1 } ?? false
                if isTooOld || isUnused { rows.append(row) }
                return true
            }
            return rows
        }
        for row in expired { _ = evict(row) }
    }

    /// Deletes folders of cleared records, up to `limit` files; true when none is left. What is in them and is not a
    /// record was there before us, and goes back to the records' folder.
    func sweepTrash(limit: Int) -> Bool {
        // First, so that a clearing that comes meanwhile is not forgotten.
        withIO { $0.hasTrash = false }
        var folders: [String] = []
        try? files.list(paths.directory) { name in
            let name = String(cString: name)
            if DiskPaths.isTrash(name) { folders.append(paths.directory + "/" + name) }
        }
        var budget = limit
        var isClean = true
        for folder in folders {
            guard let status = try? files.status(at: folder), status.kind == .directory else { continue }
            var records: [String] = []
            var others: [String] = []
            try? files.list(folder) { name in
                if RecordName(name) == nil {
                    others.append(String(cString: name))
                } else if records.count < budget {
                    records.append(String(cString: name))
                }
            }
            for name in records {
                // A folder or a link under a record's name is not ours either.
                guard let status = try? files.status(at: folder + "/" + name), status.kind == .regular else {
                    others.append(name)
                    continue
                }
                try? files.unlink(folder + "/" + name)
            }
            budget -= records.count
            if budget <= 0 {
                isClean = false
                break
            }
            for name in others { try? files.rename(folder + "/" + name, to: paths.records + "/" + name) }
            try? files.removeDirectory(folder)
        }
        if !isClean { withIO { $0.hasTrash = true } }
        return isClean
    }

    /// What directories and index files take, asked of the system.
    func updateOverhead(_ io: inout IOState) {
        let names = [
            paths.directory + "/.", paths.records, paths.index, paths.journal, paths.lock, paths.guests,
        ]
        io.overhead = names.reduce(0) { sum, name in
            sum + ((try? files.status(at: name))?.allocated ?? 0)
        }
    }
}
