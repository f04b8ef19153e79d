import Foundation

// What passes remove. None of these methods is to be called while `DiskStore.io` is held: they take it for one record.

extension RecordFiles {
    // MARK: Evicting

    /// When so many records in a row cannot be unlinked, the directory is at fault.
    static let evictionFailures = 16

    /// Evicts those of the records that were neither removed nor replaced meanwhile. Not to be called while
    /// `DiskStore.io` is held: the files are removed without it, so that no store and no removal waits for that. The
    /// rows go after the files, so whatever is removed meanwhile finds them.
    /// - Parameter failures: how many records in a row could not be unlinked. Such a record becomes the most recent
    ///   one, so that it is tried again after all others.
    /// - Returns: whether any file is gone.
    func evict(_ victims: some Sequence<IndexRow>, failures: inout Int, in disk: DiskStore) -> Bool {
        let present = catalog.beginEvicting(victims)
        var ends: [(victim: IndexRow, error: Errno?)] = []
        for victim in present where failures < Self.evictionFailures {
            let error = unlinkFile(victim.name)
            failures = error == nil ? 0 : failures + 1
            ends.append((victim, error))
        }
        disk.withIO { io in
            for end in ends { noteEviction(of: end.victim, end.error, &io.events) }
            catalog.endEvicting()
        }
        return ends.contains { $0.error == nil }
    }

    private func noteEviction(of victim: IndexRow, _ error: Errno?, _ events: inout [DiskEvent]) {
        let row = catalog.read { $0.row(victim.name) }
        if let error {
            events.append(.cannotDelete(errno: error.code))
            if let row { catalog.change { $0.put(row, usedAt: MonotonicTime.nanoseconds) } }
        } else if let row {
            note(victim.name, nil)
            // Another cache has changed the record, or has written a new one with its name, perhaps after it was gone.
            if !row.isSameRecord(as: victim) { examineLater(victim.key) }
            events.append(.evicted(key: victim.key, bytes: victim.bytes))
        }
    }

    // MARK: Ages

    /// Removes those of the records that exceed a maximum age.
    /// - Returns: when the next one does, in seconds since 1970; the present time if one could not be removed.
    func removeExpired(_ rows: [IndexRow], at now: Double, in disk: DiskStore) -> Double {
        var failures = 0
        var next = Double.infinity
        for row in rows {
            let expiry = disk.configuration.expiry(of: row)
            guard expiry < now else {
                next = min(next, expiry)
                continue
            }
            guard failures < Self.evictionFailures else { break }
            // Another cache may have appended a new tail, which the row does not know.
            let present = disk.withIO { io in
                if let status = status(of: row.name), !row.isAbout(status) { examine(row.key, &io.events) }
                return catalog.read { $0.row(row.name) }
            }
            guard let present else { continue }
            let expiryByFile = disk.configuration.expiry(of: present)
            guard expiryByFile < now else {
                next = min(next, expiryByFile)
                continue
            }
            _ = evict([present], failures: &failures, in: disk)
        }
        return failures > 0 ? now : next
    }
}
