import Foundation

/// Keeps the directory within its capacity, and removes entries that are too old. On the maintenance queue; only the maintainer
/// evicts.
extension DiskStore {
    /// Bytes that the directory takes on disk: records, folders and index files, and what bodies that are arriving may take.
    private func footprint(_ io: Section) -> Int {
        catalog.read { $0.bytes } + io.directory.overhead + incoming.bytes
    }

    var isOverCapacity: Bool {
        withIO { footprint($0) > catalog.capacity }
    }

    /// Evicts from above the capacity down to the low-water mark. `now`: even if it hardly worked a moment ago.
    func evictIfNeeded(now: Bool) {
        maintenance.assertCurrent()
        let isDue = withIO { io in
            guard io.role.isMaintainer, footprint(io) > catalog.capacity, now || io.eviction.isRested
            else { return false }
            // A journal that can be folded into the index is no reason to evict.
            let reclaimable = io.log.reclaimable(from: catalog)
            if reclaimable > 0 {
                io.log.save(catalog, isWhole: true)
                io.directory.updateOverhead()
            }
            return footprint(io) > catalog.capacity
        }
        if isDue { evict(downTo: catalog.capacity.share(configuration.lowWaterFraction)) }
    }

    /// Evicts the least recently used records until no more than `target` bytes are taken. A record that cannot be unlinked
    /// is passed over; when many in a row cannot, the directory is at fault, and eviction rests for a while.
    ///
    /// - Parameter rowLength: what a record gives back besides its file.
    private func evict(downTo target: Int, rowLength: Int = 0) {
        let pinnedLimit = catalog.capacity.share(configuration.pinnedShare)
        var passedOver = withIO { $0.eviction.stuck }
        var failures = 0
        var rowsFreed = 0
        while failures < 16 {
            let policy = EvictionPolicy(pinnedLimit: pinnedLimit, passedOver: passedOver, rowLength: rowLength)
            let victims = withIO { io in
                let excess = footprint(io) - rowsFreed - target
                return catalog.read { policy.victims(in: $0, freeing: excess) }
            }
            if victims.isEmpty { break }
            for victim in victims where failures < 16 {
                if evict(victim) {
                    failures = 0
                    rowsFreed += rowLength
                } else {
                    passedOver.insert(victim.name)
                    failures += 1
                }
            }
        }
        withIO { $0.eviction.ended(passedOver: passedOver, isHopeless: failures >= 16) }
        if replacesEmptyFolder(target) { tellOfNewFolder() }
    }

    /// False when the record cannot be unlinked.
    private func evict(_ victim: IndexRow) -> Bool {
        withIO { io in
            // Removed or replaced meanwhile.
            guard catalog.read({ $0.row(victim.name) })?.isSameRecord(as: victim) == true else { return true }
            guard remove(victim.name, &io) else { return false }
            forget(victim, &io)
            io.events.append(.evicted(key: victim.key, bytes: victim.bytes))
            return true
        }
    }

    /// An empty folder that alone takes more than the target is replaced.
    private func replacesEmptyFolder(_ target: Int) -> Bool {
        withIO { io in
            // What is arriving is to be stored in the folder that it began with.
            guard incoming.bytes == 0 else { return false }
            guard footprint(io) > target, io.directory.overhead > 64 << 10, catalog.read({ $0.count == 0 }) else {
                return false
            }
            let isReplaced = removals.withFolder { known in
                let old = io.directory.folder
                guard let new = CacheDirectory.replaceEmptyFolder(files, paths) else { return false }
                known = new
                catalog.folder = new
                emptyFolders.withLock { $0 = $0.suffix(7) + [old].compactMap(\.self) }
                return true
            }
            if isReplaced { io.directory.updateOverhead() }
            return isReplaced
        }
    }

    /// Evicts until no more than that many bytes are taken.
    func trim(toBytes bytes: Int) {
        if configuration.isReadOnly { return }
        maintenance.perform {
            runPass(isFlush: true)
            // Saving what a round did may take a block more.
            for _ in 0..<3 {
                let isOver = withIO { io in
                    guard io.role.isMaintainer else { return false }
                    // Saved as a whole: nothing is evicted for a journal that need not be there.
                    io.log.save(catalog, isWhole: true)
                    io.directory.updateOverhead()
                    return footprint(io) > max(0, bytes)
                }
                guard isOver else { return }
                evict(downTo: max(0, bytes), rowLength: IndexFileLayout.rowLength)
            }
            withIO { io in
                io.log.save(catalog, isWhole: true)
                io.directory.updateOverhead()
            }
        }
    }

    /// Removes what exceeds the maximum ages.
    func removeExpired() {
        let storageAge = configuration.maximumStorageAge
        let accessAge = configuration.maximumAccessAge
        guard storageAge != nil || accessAge != nil else { return }
        let now = clock.now().timeIntervalSince1970
        let expired = catalog.read { index in
            var rows: [(row: IndexRow, isUnused: Bool)] = []
            index.forEachLeastRecentFirst { row in
                let isTooOld = !row.isPartial && storageAge.map { now - Double(row.storedAt) > $0 + 1 } ?? false
                let isUnused = accessAge.map { now - Double(row.accessedAt) > $0 + 1 } ?? false
                if isTooOld || isUnused { rows.append((row, isUnused)) }
                return true
            }
            return rows
        }
        for (row, isUnused) in expired where isUnused || !wasFreshened(row) { _ = evict(row) }
    }

    /// Whether another process has stored or freshened the record since the row was made. Then the row is put right.
    private func wasFreshened(_ row: IndexRow) -> Bool {
        guard case .record(let record) = reader.read(row.name, .head, limit: .max >> 1),
            record.header.storedAt > row.storedAt
        else { return false }
        withIO { examine(row.key, &$0) }
        return true
    }
}
