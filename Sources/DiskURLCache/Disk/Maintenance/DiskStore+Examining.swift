import Foundation

/// The one repair: make rows and files of a name agree, whatever went wrong between them.
extension DiskStore {
    /// Looks at all slots of a name. Torn and damaged records go, of two records of one variant the older goes, and the rows
    /// become what the files say. With `verifyingBodies` each body is read, too.
    ///
    /// - Parameter times: when records that may have no row yet were last used; others enter by the time of their writing.
    func examine(
        _ key: KeyName, _ io: inout Section, verifyingBodies: Bool = false, usedAt times: [RecordName: UInt64] = [:]
    ) {
        let limit = catalog.capacity
        var rows: [IndexRow] = []
        var records: [RecordHeader] = []
        /// Slots about which nothing could be learned: their rows stay.
        var unreadable: UInt8 = 0
        for slot in 0..<RecordName.slots {
            let name = RecordName(key: key, slot: slot)
            let known = catalog.read { $0.row(name) }
            var reading = reader.read(name, verifyingBodies ? .whole : .head, limit: limit)
            if case .damaged = reading { reading = removeIfDamaged(name, limit: limit, &io) }
            switch reading {
            case .record(let record):
                records.append(record.header)
                rows.append(
                    IndexRow(
                        record.header, allocated: record.status.allocated,
                        accessedAt: known?.accessedAt ?? record.status.modifiedSeconds))
            case .foreign:
                // A record moved here or of another version is counted, and leaves by eviction; anything else is not ours.
                if let status = recordStatus(name) { rows.append(IndexRow(name, status)) }
            case .unreadable, .damaged:
                if known == nil, let status = recordStatus(name) {
                    // There, but not to be read now: a row makes lookups try again.
                    rows.append(IndexRow(name, status))
                } else {
                    unreadable |= 1 << slot
                }
            case .missing: break
            }
        }
        for record in records {
            let isOld = records.contains {
                $0.varyHash == record.varyHash && $0.digest == record.digest && $0.sequence > record.sequence
            }
            if isOld, remove(record.name, &io) { rows.removeAll { $0.slot == record.name.slot } }
        }
        for slot in 0..<RecordName.slots where unreadable & 1 << slot == 0 {
            let name = RecordName(key: key, slot: slot)
            let known = catalog.read { $0.row(name) }
            if let row = rows.first(where: { $0.slot == slot }) {
                if let known, known.isSameRecord(as: row), known.isPartial == row.isPartial { continue }
                if known == nil, let time = times[name] {
                    catalog.change { $0.put(row, usedAt: time) }
                } else {
                    catalog.change { $0.put(row) }
                }
            } else if let known {
                forget(known, &io)
                io.log.noteFreed(name)
            }
        }
    }

    /// Removes a record that proves damaged when read again with no writer at work; gives what it then is. A record that
    /// another process has not finished looks the same, but its writer holds the file's lock.
    private func removeIfDamaged(_ name: RecordName, limit: Int, _ io: inout Section) -> RecordReading {
        paths.withRecord(name) { path in
            do throws(Errno) {
                let file = try files.openFile(path, O_RDONLY)
                defer { files.closeQuietly(file) }
                guard mayLock, try files.lockFile(file, exclusively: true) else { return .damaged }
                // While the lock is ours nobody else removes it as damaged, and no writer is at work.
                let again = reader.read(name, .whole, limit: limit)
                guard case .damaged = again else { return again }
                // It was removed, and this is another record, which is being written.
                guard files.isStill(file, at: path) else { return .damaged }
                try files.unlink(path)
                io.events.append(.removedCorruptRecord(key: name.key))
                io.log.noteFreed(name)
                return .missing
            } catch {
                return error.isMissing ? .missing : .unreadable(error)
            }
        }
    }

    /// Looks into what lookups found odd. On the maintenance queue.
    func examineRequested() {
        while let request = catalog.nextExamination() {
            withIO { examine(request.key, &$0, verifyingBodies: request.verifiesBodies) }
        }
    }

    /// The status of a record's file; nil when there is none, or what has the name is not a file of ours.
    /// - Parameter folder: that of the records, where it is open.
    func recordStatus(_ name: RecordName, in folder: Int32? = nil) -> FileStatus? {
        let status =
            if let folder {
                DiskPaths.withName(name) { try? files.status(of: $0, in: folder) }
            } else {
                paths.withRecord(name) { try? files.status(at: $0) }
            }
        guard let status, status.kind == .regular, status.links == 1 else { return nil }
        return status
    }
}
