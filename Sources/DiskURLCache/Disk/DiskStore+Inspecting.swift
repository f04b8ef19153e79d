import Foundation

/// What an inspector does with records.
extension DiskStore {
    /// Removes the record of that name if it still has that sequence, or, with nil, if it still is damaged. False when nothing
    /// was removed.
    func removeRecord(_ name: RecordName, sequence: UInt64?) -> Bool {
        let isRemoved = withIO { io in
            // Damage may lie in the body: that a record is damaged still is seen with it only.
            let reading = reader.read(name, sequence == nil ? .whole : .head, limit: .max >> 1)
            switch (reading, sequence) {
            case (.record(let record), let sequence?): guard record.header.sequence == sequence else { return false }
            case (.damaged, nil): break
            default: return false
            }
            guard remove(name, &io) else { return false }
            if let row = catalog.read({ $0.row(name) }) { forget(row, &io) }
            return true
        }
        if isRemoved { tellVariant(of: name.key) }
        return isRemoved
    }

    /// Saves the index as a whole, if this cache maintains it: the journal takes next to nothing then.
    func foldJournal() {
        flush()
        maintenance.perform {
            withIO { io in
                guard io.role.isMaintainer else { return }
                io.log.save(catalog, isWhole: true)
                io.directory.updateOverhead()
            }
        }
    }

    /// Makes the index anew from the records; false when another process maintains it.
    func rebuildIndex() -> Bool {
        flush()
        guard isMaintainer else { return false }
        maintenance.perform {
            withIO { io in
                io.discarded.append(catalog.exchange(DiskIndex()))
                catalog.isAuthoritative = false
                io.log.begin(with: IndexStorage(files, paths))
            }
            reconcile()
            withIO { io in
                save(&io)
                catalog.isAuthoritative = true
            }
        }
        return true
    }
}
