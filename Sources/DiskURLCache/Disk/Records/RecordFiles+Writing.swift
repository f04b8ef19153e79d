import Foundation

/// A file in a free slot, for a record that is being written. It has no row, and examinations leave it alone.
final class ReservedSlot: @unchecked Sendable {
    // @unchecked: `closed` is reached only while this object's `SharedLock` is held, and the rest is constant.
    let name: RecordName
    let file: Int32
    /// The rows of the name's other records when the slot was reserved.
    let rows: [IndexRow]
    /// The folder of records in which the file was made.
    let folder: FileIdentity?
    private let files: any FileSystem
    @exclusivity(unchecked) private var closed = false

    init(
        _ name: RecordName, _ file: Int32, beside rows: [IndexRow], in folder: FileIdentity?, _ files: any FileSystem
    ) {
        self.name = name
        self.file = file
        self.rows = rows
        self.folder = folder
        self.files = files
    }

    deinit { try? close() }

    var isClosed: Bool { SharedLock.withLock(of: self) { closed } }

    func close() throws(Errno) {
        let wasClosed = SharedLock.withLock(of: self) {
            defer { closed = true }
            return closed
        }
        if !wasClosed { try files.close(file) }
    }
}

/// Where the body of a response is before its record is stored.
enum BodyPlace: Sendable {
    /// In memory: it is written together with the tail.
    case memory
    /// A file of its own, which gets the tail, and then the name of the slot.
    case file(IncomingBody)
}

// A record is stored in three steps: a slot is reserved under `DiskStore.io`, its bytes are written outside of that
// lock, and it is published under the lock again. So a slow write holds up neither lookups nor removals. A long body
// that is stored is written before its key's changes are put in order, without any lock, into a file that is no
// record's: its end may look like a tail, and whoever finds a record's name with such an end takes it for a record. The
// body of a record that is written anew goes into such a file, too, in its place among the changes of its key.

extension RecordFiles {
    /// Writes a record into a free slot of its name, and removes the record that it replaces. Not to be called while
    /// `DiskStore.io` is held.
    /// - Parameters:
    ///   - place: where the body is.
    ///   - rewritten: the record that this one is, with other metadata: only if it is still there.
    ///   - disk: whose records these are.
    /// - Returns: false if another process stored a newer record of the variant meanwhile, which is kept, or if the
    ///   record to rewrite was removed or changed.
    func store(
        _ record: inout PreparedRecord, place: BodyPlace, insteadOf rewritten: RecordFooter? = nil, usedAt: UInt64,
        in disk: DiskStore
    ) throws(Errno) -> Bool {
        var place = place
        var taken: Slots = []
        var mayMakeFolder = true
        while true {
            var reserved: ReservedSlot?
            do throws(Errno) {
                let slot = try reserve(
                    for: (record.footer.name.key, record.footer.varyHash), not: &taken, in: disk)
                reserved = slot
                record.footer.name = slot.name
                let status = try writer.fill(slot, with: &record, place)
                let written = LoadedRecord(
                    footer: record.footer, metadata: record.metadata, content: .unread(nil), status: status)
                return try disk.withIO { io throws(Errno) in
                    // The folder was cleared meanwhile, and the slot's file with it.
                    guard io.directory.identity?.folder == slot.folder else { throw Errno(EEXIST) }
                    if let rewritten, footer(of: rewritten.name) != rewritten {
                        _ = giveBack(slot, after: Errno(ENOENT), taken: &taken)
                        return false
                    }
                    let isKept = try publish(written, in: slot, place, usedAt: usedAt, &io.events)
                    // If the new metadata make it a different variant, it did not replace the old record.
                    if isKept, let rewritten { removeReplaced(rewritten, &io.events) }
                    return isKept
                }
            } catch {
                // The file of the body may have been removed with everything else. If memory has the body, too, it is
                // written from there.
                if !record.body.isEmpty { place = .memory }
                if let reserved, disk.withIO({ _ in giveBack(reserved, after: error, taken: &taken) }) {
                    // Only its file had the body, and that is gone.
                    if case .file(let body) = place, !body.hasName { throw error }
                    continue
                }
                // The folder was removed meanwhile, so it is made again.
                guard error.isMissing, mayMakeFolder, disk.withIO({ disk.prepareDirectory(&$0, mayMake: true) })
                else { throw error }
                mayMakeFolder = false
            }
        }
    }

    private func reserve(
        for record: (key: KeyName, varyHash: UInt64), not taken: inout Slots, in disk: DiskStore
    ) throws(Errno) -> ReservedSlot {
        try disk.withIO { io throws(Errno) in
            guard disk.isUsable(&io) else { throw Errno(0) }
            return try reserve(for: record, not: &taken, in: io.directory.identity?.folder, &io.events)
        }
    }

    /// Makes an empty file in a free slot. Throws `ENOENT` if the folder does not exist.
    /// - Parameter taken: the slots that turned out to be taken by another process.
    private func reserve(
        for record: (key: KeyName, varyHash: UInt64), not taken: inout Slots, in folder: FileIdentity?,
        _ events: inout [DiskEvent]
    ) throws(Errno) -> ReservedSlot {
        let key = record.key
        let variant = UInt32(truncatingIfNeeded: record.varyHash)
        var rows = taken.isEmpty ? rows(of: key, &events) : examine(key, &events)
        while true {
            let slot = try freeSlot(
                beside: rows, not: taken.union(catalog.slotsInUse(of: key)), for: variant, &events)
            let name = RecordName(key: key, slot: slot)
            do throws(Errno) {
                let slot = try writer.makeSlot(name, beside: rows, in: folder)
                catalog.beginWriting(name)
                return slot
            } catch {
                // Another process has written into this slot.
                guard error.code == EEXIST, taken != .all else { throw error }
                taken.insert(Slots(slot))
                rows = examine(key, &events)
            }
        }
    }

    /// Gives a record that was written into its slot a row, so that lookups find it, and removes the record that it
    /// replaces.
    /// - Parameter place: where the body was. A file of its own has the whole record by now, and gets the name of the
    ///   slot.
    /// - Returns: false if another process stored a newer record of the variant meanwhile, which is kept.
    /// - Throws: `EEXIST` if another process has removed the record already. It may have unlinked an older record by
    ///   the name that this one has now. Or it has stored a newer one, which the next try finds. Or it was a removal,
    ///   which the look after the store finds.
    private func publish(
        _ written: LoadedRecord, in slot: ReservedSlot, _ place: BodyPlace, usedAt: UInt64, _ events: inout [DiskEvent]
    ) throws(Errno) -> Bool {
        catalog.endWriting(slot.name)
        if case .file(let body) = place {
            try writer.rename(body, into: slot)
            body.becameRecord()
        } else if !writer.isAlone(), isGone(slot.name, written.status.identity) {
            throw Errno(EEXIST)
        }
        let row = IndexRow(written.footer, written.status, accessedAt: clock.now().recordSeconds)
        note(row.name, row, usedAt: usedAt)
        let hasOlder = slot.rows.contains { $0.varyHash == row.varyHash && $0.slot != row.slot }
        guard hasOlder else { return true }
        // Not earlier: until the new record is whole, lookups need the older one.
        return try settle(written, row, among: slot.rows.reduce([]) { $0.union(Slots($1.slot)) }, &events)
    }

    /// Whether the slot has a different file by now, or none. False if that cannot be found out.
    func isGone(_ name: RecordName, _ written: FileIdentity) -> Bool {
        do throws(Errno) {
            return try paths.withRecord(name) { path throws(Errno) in try files.status(at: path) }.identity != written
        } catch {
            return error.isMissing
        }
    }

    /// Gives up a slot whose record could not be written.
    /// - Parameter taken: the slot is added to it if another process has taken the slot meanwhile.
    /// - Returns: whether another slot is to be tried.
    private func giveBack(_ slot: ReservedSlot, after error: Errno, taken: inout Slots) -> Bool {
        catalog.endWriting(slot.name)
        writer.removeSlot(slot, after: error)
        try? slot.close()
        if catalog.state.isCurrent { catalog.change { $0.remove(slot.name) } }
        // What the other cache told of the key may have been heeded already.
        if error.code == EEXIST { examineLater(slot.name.key) }
        guard error.code == EEXIST, taken != .all else { return false }
        taken.insert(Slots(slot.name.slot))
        return true
    }

    /// Another cache has taken the slot, and perhaps has a record there now. Examinations in between have left out a
    /// slot into which this cache was writing.
    func examineLater(_ key: KeyName) {
        if catalog.state.isOwner { catalog.requestExamination(of: key) }
    }

    /// Writes the whole record again, into a different slot. The body, which may be large, goes from file to file in
    /// pieces. Not to be called while `DiskStore.io` is held.
    /// - Returns: false if that failed, or if the record was removed or changed meanwhile: it is not brought back.
    func rewrite(_ rewriting: Rewriting, usedAt: UInt64, in disk: DiskStore) -> Bool {
        let reading = reader.read(rewriting.old.name, .opened, limit: catalog.capacity)
        guard case .record(let old) = reading else { return false }
        guard old.footer == rewriting.old, let body = old.opening else { return false }
        do throws(Errno) {
            let file = try disk.beginIncoming()
            defer { file.discard() }
            // A pass, or the next store, makes the room: the stripe of a key is held here.
            _ = file.reserve(body.count, isAll: true)
            for start in stride(from: 0, to: body.count, by: OpenBody.pieceLength) {
                guard let piece = body.part(start..<start + OpenBody.pieceLength).contents else { throw Errno(EIO) }
                try file.append(piece)
            }
            // It was read a second time: what was not verified must not replace what was.
            guard file.sum.checksum == old.footer.bodyChecksum else { throw Errno(EIO) }
            guard
                var record = PreparedRecord(
                    rewriting.metadata, bodyOf: file.sum, for: DiskKey(old.footer), keepsURL: keepsURLs)
            else { return false }
            return try store(&record, place: .file(file), insteadOf: old.footer, usedAt: usedAt, in: disk)
        } catch {
            // If everything was removed meanwhile, so was the new file.
            if footer(of: old.footer.name) == old.footer {
                disk.tell([.notUpdated(key: old.footer.name.key, .diskFailed(errno: error.code))])
            }
            return false
        }
    }

    private func freeSlot(
        beside rows: [IndexRow], not taken: Slots, for variant: UInt32, _ events: inout [DiskEvent]
    ) throws(Errno) -> UInt8 {
        let used = rows.reduce(taken) { $0.union(Slots($1.slot)) }
        if let free = (0..<RecordName.slots).first(where: { !used.contains($0) }) { return free }
        // If all slots have variants, the least recently used one is removed. But not the record that is being
        // replaced, which has to remain if writing the new one fails.
        let others = rows.filter { $0.varyHash != variant && !taken.contains($0.slot) }
        let oldest = others.min { ($0.lastUse, $0.accessedAt) < ($1.lastUse, $1.accessedAt) }
        guard let oldest, unlink(oldest.name, &events) else { throw Errno(EEXIST) }
        events.append(.evicted(key: oldest.key, bytes: oldest.bytes))
        return oldest.slot
    }
}
