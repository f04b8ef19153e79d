import Foundation

/// The one repair: make rows and files of a key agree, whatever went wrong between them.
extension DiskStore {
    /// Looks at all slots of a key. Torn and damaged records go, of two records of one variant the older goes, and the rows
    /// become what the files say. With `verifyingBodies` each body is read, too.
    func examine(_ digest: KeyDigest, _ io: inout IOState, verifyingBodies: Bool = false) {
        let limit = state.withLock { $0.capacity }
        var rows: [IndexRow] = []
        var records: [RecordHeader] = []
        /// Slots about which nothing could be learned: their rows stay.
        var unreadable: UInt8 = 0
        for slot in 0..<RecordName.slots {
            let name = RecordName(digest: digest, slot: slot)
            var reading = reader.read(digest, slot: slot, verifyingBodies ? .whole : .head, limit: limit)
            if case .damaged = reading { reading = removeIfDamaged(name, limit: limit, &io) }
            switch reading {
            case .record(let record):
                records.append(record.header)
                let known = state.withLock { $0.index.row(digest, slot) }
                rows.append(
                    IndexRow(
                        record.header, allocated: record.allocated,
                        accessedAt: known?.accessedAt ?? clock.now().recordSeconds))
            case .foreign:
                // A record moved here or of another version is counted, and leaves by eviction; anything else is not ours.
                if let status = recordStatus(name) {
                    rows.append(IndexRow(name, status))
                }
            case .unreadable, .damaged:
                if state.withLock({ $0.index.row(digest, slot) }) == nil, let status = recordStatus(name) {
                    // There, but not to be read now: a row makes lookups try again.
                    rows.append(IndexRow(name, status))
                } else {
                    unreadable |= 1 << slot
                }
            case .missing: break
            }
        }
        for record in records {
            let isOld = records.contains { $0.varyHash == record.varyHash && $0.sequence > record.sequence }
            if isOld, remove(RecordName(digest: digest, slot: record.slot), &io) {
                rows.removeAll { $0.slot == record.slot }
            }
        }
        for slot in 0..<RecordName.slots where unreadable & 1 << slot == 0 {
            let row = rows.first { $0.slot == slot }
            state.withLock { state in
                let known = state.index.row(digest, slot)
                if let row {
                    if let known, known.blocks == row.blocks, known.varyHash == row.varyHash,
                        known.isPartial == row.isPartial
                    {
                        return
                    }
                    state.index.insert(row)
                    io.pending.append(JournalRow(kind: .store, row: row))
                } else if let known {
                    state.index.remove(digest, slot)
                    io.pending.append(JournalRow(kind: .remove, row: known))
                    io.noteFreed(RecordName(digest: digest, slot: slot))
                }
            }
        }
    }

    /// Removes a record that proves damaged when read again with no writer at work; gives what it then is. A record that
    /// another process has not finished looks the same, but its writer holds the file's lock.
    private func removeIfDamaged(_ name: RecordName, limit: Int, _ io: inout IOState) -> RecordReading {
        paths.withRecord(name.digest, name.slot) { path in
            do throws(Errno) {
                let file = try files.openFile(path, O_RDONLY)
                defer { files.closeQuietly(file) }
                guard try files.lockFile(file, exclusively: true) else { return .damaged }
                // While the lock is ours nobody else removes it as damaged, and no writer is at work.
                let again = reader.read(name.digest, slot: name.slot, .whole, limit: limit)
                guard case .damaged = again else { return again }
                try files.unlink(path)
                io.events.append(.removedCorruptRecord(key: name.digest))
                io.noteFreed(name)
                return .missing
            } catch {
                return error.isMissing ? .missing : .unreadable(error)
            }
        }
    }

    /// Removes a record's file; true when it is gone. Rows are the caller's to change.
    func remove(_ name: RecordName, _ io: inout IOState) -> Bool {
        let failure: Errno? = paths.withRecord(name.digest, name.slot) { path in
            do throws(Errno) {
                try files.unlink(path)
                return nil
            } catch {
                return error.isMissing || error.code == ENOTDIR ? nil : error
            }
        }
        if let failure {
            io.events.append(.cannotDelete(errno: failure.code))
            return false
        }
        io.noteFreed(name)
        return true
    }

    /// Looks into what lookups found odd. On the maintenance queue.
    func examineSuspects() {
        while true {
            let next = state.withLock { state in state.suspects.popFirst() }
            guard let next else { return }
            withIO { examine(next.key, &$0, verifyingBodies: next.value) }
        }
    }
}
