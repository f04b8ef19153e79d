import Foundation

extension CacheInspector {
    /// Removes records; a program that uses the cache misses them from then on. A record that was replaced since it was
    /// listed stays.
    /// - Returns: how many are gone.
    @discardableResult
    public func remove(_ records: [Record], progress: (_ done: Int, _ total: Int) -> Void = { _, _ in }) -> Int {
        guard !records.isEmpty else { return 0 }
        let store = open()
        defer { store.close() }
        return store.removeRecords(records.map { ($0.name, $0.sequence) }, progress: progress)
    }

    /// Removes the least recently used records until the directory takes no more than so many bytes; pinned ones last.
    /// - Returns: what was removed, and the bytes that the directory takes now.
    public func trim(
        toBytes bytes: Int, progress: (_ done: Int, _ total: Int) -> Void = { _, _ in }
    ) throws(InspectionError) -> (removed: Int, bytes: Int) {
        let records = try records()
        var total = records.reduce(overhead) { $0 + $1.allocated }
        var victims: [Record] = []
        let leastRecentFirst = records.reversed().filter { $0.state == .intact }
        for record in leastRecentFirst.filter({ !$0.isPinned }) + leastRecentFirst.filter(\.isPinned)
        where total > bytes {
            victims.append(record)
            total -= record.allocated
        }
        let removed = remove(victims, progress: progress)
        return (removed, try self.records().reduce(overhead) { $0 + $1.allocated })
    }

    /// Makes the index anew from the records. When each entry was last used is lost with the old index.
    /// - Returns: how many records the new index holds.
    public func rebuildIndex() throws(InspectionError) -> Int {
        let store = open()
        defer { store.close() }
        guard store.rebuildIndex() else { throw InspectionError(.inUse, path: directory.path) }
        return store.entryCount
    }

    /// One more process on the directory, which keeps its hands off what nobody named.
    private func open() -> DiskStore {
        DiskStore(configuration: DiskStore.Configuration(directory: directory.path, capacity: .max))
    }
}

extension DiskStore {
    fileprivate func removeRecords(
        _ records: [(name: RecordName, sequence: UInt64?)], progress: (Int, Int) -> Void
    ) -> Int {
        flush()
        var removed = 0
        for (done, record) in records.enumerated() {
            progress(done, records.count)
            let isGone = withIO { io -> Bool in
                let name = record.name
                // Damage may lie in the body: that a record is damaged still is seen with it only.
                let extent: RecordReader.Extent = record.sequence == nil ? .whole : .head
                let reading = reader.read(name.digest, slot: name.slot, extent, limit: .max >> 1)
                if let sequence = record.sequence {
                    guard case .record(let found) = reading, found.header.sequence == sequence else { return false }
                } else {
                    guard case .damaged = reading else { return false }
                }
                guard remove(name, &io) else { return false }
                if let row = state.withLock({ $0.index.row(name.digest, name.slot) }) {
                    state.withLock { _ = $0.index.remove(name.digest, name.slot) }
                    io.pending.append(JournalRow(kind: .remove, row: row))
                }
                return true
            }
            if isGone { removed += 1 }
        }
        progress(records.count, records.count)
        flush()
        return removed
    }

    /// False when another process maintains the index.
    fileprivate func rebuildIndex() -> Bool {
        flush()
        guard withIO({ $0.isMaintainer }) else { return false }
        maintenance.perform {
            withIO { io in
                state.withLock { state in
                    state.index = DiskIndex()
                    state.touchedCount = 0
                    state.isAuthoritative = false
                }
                io.pending = []
                io.storage.invalidate()
            }
            reconcile()
            withIO { io in
                save(&io)
                state.withLock { $0.isAuthoritative = true }
            }
        }
        return true
    }
}
