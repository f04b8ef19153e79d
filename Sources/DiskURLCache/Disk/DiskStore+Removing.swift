import Foundation

/// Removals, on the caller's thread: when one returns, the files are removed, even if the process dies the next moment.
extension DiskStore {
    /// Removes all variants of a key.
    package func remove(_ key: RequestKey) {
        let name = key.name
        announcing(.removed(name)) { withIO { records.remove(name, &$0.events) } }
    }

    /// Removes one variant. A record of the key that cannot be read is removed as well, since it might be that variant.
    package func remove(_ key: RequestKey, variant: VaryKey) { remove(key.name, variant: variant.recordHash) }

    func remove(_ name: KeyName, variant: UInt64) {
        let hash = UInt32(truncatingIfNeeded: variant)
        /// The row of a record that was not read does not say which variant it is.
        func isOfVariant(_ row: IndexRow) -> Bool {
            if !row.isPartial { return row.varyHash == hash }
            return records.mayMatch(row.name) { UInt32(truncatingIfNeeded: $0.footer.varyHash) == hash }
        }
        // Nothing is told about a record that does not exist, so that the hash of a response that is only in memory is
        // never written to disk.
        // An index that knows every record is asked without the lock of the files.
        let rows = catalog.exactRows(of: name) ?? withIO { records.examine(name, &$0.events) }
        guard rows.contains(where: isOfVariant) else { return }
        announcing(.stored(name)) { withIO { records.remove(name, &$0.events, where: isOfVariant) } }
    }

    /// Removes the record with this sequence number, if it is still there. A record of the key that cannot be read is
    /// removed as well, since it might be that one.
    func remove(_ key: RequestKey, sequence: UInt64) {
        let name = key.name
        announcing(.stored(name)) {
            withIO { io in
                records.remove(name, &io.events) { row in
                    records.mayMatch(row.name) { $0.footer.sequence == sequence }
                }
            }
        }
    }

    /// Removes everything, in the same time however many entries there are. The files are deleted later.
    package func removeAll() {
        clear()
        maintenance.schedule(after: configuration.maintenanceDelay)
    }

    /// Moves the folder of records away. If that fails, nothing is read from the folder until it succeeds, which a pass
    /// tries again every second. Each try is told: another cache may have read again what was still there.
    func clear() {
        announcing(.removedAll) {
            withIO { io in
                catalog.forget()
                let wasToClear = io.directory.mustClear
                do throws(Errno) {
                    try io.directory.clear()
                } catch {
                    if !wasToClear { io.events.append(.cannotDelete(errno: error.code)) }
                    move(.refuse(isReadable: false))
                    // Asked for here, since such a pass ends before its work begins.
                    return maintenance.schedule(after: 1)
                }
                move(.accept)
                followFolder(io)
                incoming.unlinkAll(files, paths)
            }
        }
    }

    /// Deletes what a clearing left, up to about a thousand files, which takes some milliseconds. The maintenance queue
    /// deletes the rest. Needs no lock: no cache uses those folders.
    func sweepAfterClearing() {
        if isOpeningProcess, !configuration.isReadOnly { _ = CacheDirectory.sweepTrash(files, paths, limit: 1_000) }
    }

    /// Removes every entry that meets all conditions. With a resource among them (RFC 9111 §4.4) it visits only the
    /// records of that resource. Otherwise other caches are told that everything may have been removed.
    package func remove(matching criteria: EntryCriteria, willRemove: (UInt64) -> Void) {
        removing(criteria) { () throws(Errno) in
            // Heads are read without a lock.
            for row in try rows(for: criteria) where records.matches(criteria, row) {
                willRemove(row.key.resource)
                withIO { io in
                    let isSame = catalog.exactRows(of: row.key)?.contains { $0.isSameRecord(as: row) } == true
                    if isSame || records.matches(criteria, row) { records.removeForGood(row.name, &io.events) }
                }
            }
        }
    }

    /// Marks every entry that meets all conditions as stale, by a new tail of its record. Other caches are told that
    /// these may have been removed, or all without a resource, so that they forget what they have in memory. A record
    /// that gets no tail, for example on a full disk, is removed.
    package func markStale(matching criteria: EntryCriteria, at time: Date) {
        removing(criteria) { () throws(Errno) in
            for row in try rows(for: criteria) where records.matches(criteria, row) {
                withIO { records.markStale(row, matching: criteria, at: time, &$0.events) }
            }
        }
    }

    /// The names of all records, the least recently used first.
    func recordNames() -> [RecordName] { ((try? allRows { _ in true }) ?? []).map(\.name) }

    /// The rows of the records that may meet the conditions.
    private func rows(for criteria: EntryCriteria) throws(Errno) -> [IndexRow] {
        let filter = RowFilter(criteria)
        guard let resource = criteria.resource else { return try allRows(where: filter.mayMatch) }
        let rows = try withIO { io throws(Errno) in try records.rows(ofResource: resource, &io.events) }
        return rows.filter(filter.mayMatch)
    }

    /// Of every record that is known, or that is in the folder.
    private func allRows(where isWanted: (IndexRow) -> Bool) throws(Errno) -> [IndexRow] {
        if refresh() {
            for key in catalog.sharedKeys { withIO { _ = records.examine(key, &$0.events) } }
            return catalog.read { $0.inOrder }.filter(isWanted)
        }
        do throws(Errno) {
            return try FolderListing(files, paths, owner: configuration.owner).records.map {
                IndexRow($0.name, $0.status)
            }.filter(isWanted)
        } catch {
            if error.isMissing { return [] }
            throw error
        }
    }

    /// A removal that has to find its records. If the folder cannot be listed, everything is removed, so that nothing
    /// comes back that was to be removed, and other caches are told so. That needs no descriptor, and is tried again
    /// until it is done.
    private func removing(_ criteria: EntryCriteria, _ remove: () throws(Errno) -> Void) {
        announcing(criteria.resource.map { .removedResource($0) } ?? .removedAll) {
            do throws(Errno) {
                try remove()
            } catch {
                tell([.cannotList(errno: error.code)])
                removeAll()
            }
        }
    }

    /// What became of a record that was to be removed.
    package enum RecordRemoval: Sendable {
        case removed
        /// There is none with that name and number.
        case notThere
        /// It could not be read or deleted, or belongs to somebody else.
        case kept
    }

    /// Removes the record with that name if it still has that sequence number; with nil, if it is still damaged.
    package func removeRecord(_ name: RecordName, sequence: UInt64?) -> RecordRemoval {
        var removal = RecordRemoval.kept
        announcing(.stored(name.key)) {
            removal = withIO { io in
                // The damage may be in the body, so the body has to be read to see that the record is still damaged.
                let reading = reader.read(name, sequence == nil ? .opened : .tail, limit: .max)
                switch (reading, sequence) {
                case (.missing, _): return .notThere
                case (.record(let record), let sequence?):
                    guard record.footer.sequence == sequence else { return .notThere }
                case (.damaged, nil): break
                default: return .kept
                }
                return records.unlink(name, &io.events) ? .removed : .kept
            }
        }
        return removal
    }

    /// Tells the other caches, if there are any, that the files of a key have changed.
    func tellOfChange(of key: KeyName) {
        for change in [DirectoryChange.storing(key), .stored(key)] { membership.tell(change, for: self) }
    }

    /// Tells the other caches before and after a removal, if there are any.
    func announcing(_ change: DirectoryChange, _ remove: () -> Void) {
        guard mayRemove(change) else { return }
        // If a guest removes one variant, the owner is told about a store, so that it looks at the files of the key
        // from now on.
        if case .stored(let key) = change, !isOwner {
            membership.tell(.storing(key), for: self)
        }
        let wasAlone = catalog.isAloneAndCurrent
        membership.beginRemoval(change, for: self)
        // Its look may have found that the directory cannot be searched.
        if wasAlone, !catalog.isAloneAndCurrent { restoreModes() }
        remove()
        let isUntold = membership.endRemoval(change, for: self)
        maintenance.schedule(after: isUntold || !catalog.state.isCurrent ? 1 : configuration.savingInterval)
    }

    /// Whether removals may be made: not in a directory of another user. A directory that does not exist is made, since
    /// another process may have entries in memory and has to be told about the removal there.
    private func mayRemove(_ change: DirectoryChange) -> Bool {
        guard !configuration.isReadOnly, isOpeningProcess, paths.canBeUsed else { return false }
        if catalog.isAloneAndCurrent {
            // A record that is removed by its name shows by itself that it cannot be. Of all others those would be
            // taken to match whose heads cannot be read.
            if change == .removedAll { restoreModes() }
            return true
        }
        return withIO { io in
            let isReached = prepareDirectory(&io, mayMake: true) && !io.directory.lacksModes
            if !isReached, restoreModes() { _ = prepareDirectory(&io, mayMake: true) }
            return io.directory.error?.isForeign != true
        }
    }

    /// Makes the folders searchable again. A pass may have looked for records meanwhile, and taken them for gone.
    @discardableResult
    private func restoreModes() -> Bool {
        guard files.restoreModes(paths, owner: configuration.owner) else { return false }
        catalog.distrust()
        return true
    }
}
