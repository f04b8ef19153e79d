import Foundation

/// Removing responses, and telling other caches of it.
extension DiskStore {
    /// Removes all variants of a key.
    package func remove(_ key: RequestKey) {
        let name = key.name
        announcing(.removed(name)) { withIO { records.remove(name, &$0.events) } }
    }

    /// Removes one variant.
    package func remove(_ key: RequestKey, variant: VaryKey) { remove(key.name, variant: variant.recordHash) }

    func remove(_ name: KeyName, variant: UInt64) {
        let hash = UInt32(truncatingIfNeeded: variant)
        // Nothing is told about a record that does not exist, so that the hash of a response that is only in memory is
        // never written to disk.
        guard catalog.exactRows(of: name)?.contains(where: { $0.varyHash == hash }) != false else { return }
        announcing(.stored(name)) { withIO { records.remove(name, &$0.events) { $0.varyHash == hash } } }
    }

    /// Removes everything, in the same time however many entries there are. The files are deleted later.
    package func removeAll() {
        announcing(.removedAll) {
            withIO { io in
                catalog.forget()
                if clear(&io) { incoming.unlinkAll(files, paths) }
            }
        }
        maintenance.schedule(after: configuration.maintenanceDelay)
    }

    /// Removes every entry that meets all conditions. If the only condition is a resource (RFC 9111 §4.4), it visits
    /// only the entries that it removes. Otherwise other caches are told that everything may have been removed.
    package func remove(matching criteria: EntryCriteria) {
        if let resource = criteria.resource, criteria == EntryCriteria(resource: resource) {
            return announcing(.removedResource(resource)) { withIO { records.remove(resource: resource, &$0.events) } }
        }
        announcing(.removedAll) {
            let rows: [IndexRow]
            if refresh() {
                for key in catalog.sharedKeys { withIO { _ = records.examine(key, &$0.events) } }
                rows = catalog.read { $0.leastRecentFirst }
            } else {
                let listing = try? FolderListing(files, paths, owner: configuration.owner)
                rows = listing?.records.map { IndexRow($0.name, $0.status) } ?? []
            }
            // Heads are read without a lock.
            for row in rows where criteria.mayMatch(row) && matches(criteria, row) {
                withIO { io in
                    let isSame = catalog.exactRows(of: row.key)?.contains { $0.isSameRecord(as: row) } == true
                    if isSame || matches(criteria, row) { records.removeForGood(row.name, &io.events) }
                }
            }
        }
    }

    /// A record that cannot be read is removed as well, since it might match.
    private func matches(_ criteria: EntryCriteria, _ row: IndexRow) -> Bool {
        switch reader.read(row.name, .tail, limit: .max >> 1) {
        case .record(let record):
            let accessedAt = catalog.read { $0.row(row.name) }?.accessedAt ?? row.accessedAt
            let full = IndexRow(record.footer, record.status, accessedAt: accessedAt)
            return criteria.mayMatch(full) && criteria.matches(record.metadata)
        case .unreadable, .damaged: return true
        case .missing, .foreign: return false
        }
    }

    /// Removes the record with that name if it still has that sequence number; with nil, if it is still damaged. False
    /// if nothing was removed.
    package func removeRecord(_ name: RecordName, sequence: UInt64?) -> Bool {
        let isRemoved = withIO { io in
            // The damage may be in the body, so the body has to be read to see that the record is still damaged.
            let reading = reader.read(name, sequence == nil ? .whole : .tail, limit: .max >> 1)
            switch (reading, sequence) {
            case (.record(let record), let sequence?): guard record.footer.sequence == sequence else { return false }
            case (.damaged, nil): break
            default: return false
            }
            return records.unlink(name, &io.events)
        }
        if isRemoved {
            for change in [DirectoryChange.storing(name.key), .stored(name.key)] {
                tell(membership.tell(change, for: self))
            }
        }
        return isRemoved
    }

    /// Tells the other caches before and after a removal, if there are any.
    private func announcing(_ change: DirectoryChange, _ remove: () -> Void) {
        guard mayRemove else { return }
        // If a guest removes one variant, the owner is told about a store, so that it looks at the files of the key
        // from now on.
        if case .stored(let key) = change, !isOwner { tell(membership.tell(.storing(key), for: self)) }
        tell(membership.beginRemoval(change, for: self))
        remove()
        let (isUntold, events) = membership.endRemoval(change, for: self)
        tell(events)
        maintenance.schedule(after: isUntold || !catalog.state.isCurrent ? 1 : configuration.savingInterval)
    }

    /// Whether removals may be made: not in a directory of another user. A directory that does not exist is made, since
    /// another process may have entries in memory and has to be told about the removal there.
    private var mayRemove: Bool {
        guard !configuration.isReadOnly, isOpeningProcess, paths.canBeUsed else { return false }
        if catalog.isAloneAndCurrent { return true }
        return withIO { io in
            _ = prepareDirectory(&io, mayMake: true)
            return io.directory.error?.isForeign != true
        }
    }
}
