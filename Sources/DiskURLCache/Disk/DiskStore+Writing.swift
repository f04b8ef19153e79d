import Foundation

/// The result of a write.
enum DiskWriteResult: Sendable, Hashable {
    case written(bytes: Int)
    /// Another process stored a later response of the same variant meanwhile: that one stays.
    case superseded
    case dropped(DiskEvent.DropReason)
}

/// Writes are done on the caller's thread. When a write returns, its file is complete.
extension DiskStore {
    /// Writes an entry in place of that of the same key and variant.
    ///
    /// When an entry is refused, the older one of its key and variant is removed: a replaced response is never served. When writing
    /// fails, on a full disk for example, the older one stays.
    ///
    /// - Parameter usedAt: when it was stored (`MonotonicTime.nanoseconds`): its place in the order of use.
    @discardableResult
    func write(_ entry: StoredEntry, for key: RequestKey, usedAt: UInt64) -> DiskWriteResult {
        write(entry, for: key.diskKey, usedAt: usedAt)
    }

    @discardableResult
    func write(_ entry: StoredEntry, for key: DiskKey, usedAt: UInt64) -> DiskWriteResult {
        if configuration.isReadOnly { return .dropped(.unavailable) }
        let largest = largestEntry
        let tooLarge = DiskEvent.DropReason.tooLarge(bytes: entry.body.count, limit: largest)
        if entry.body.count > largest || largest == 0 { return refuse(entry.metadata, key, tooLarge) }
        // Prepared before the lock is taken: summing a large body takes a while.
        guard var record = PreparedRecord(entry, for: key, keepsURL: configuration.keepsURLs)
        else { return refuse(entry.metadata, key, .notRepresentable) }
        guard let length = record.header.recordLength, length <= largest
        else { return refuse(entry.metadata, key, tooLarge) }
        return write(&record, usedAt: usedAt)
    }

    /// - Parameter body: where it is in a file already. Then the caller tells of a failure.
    func write(_ record: inout PreparedRecord, of body: IncomingBody? = nil, usedAt: UInt64) -> DiskWriteResult {
        let key = record.header.name.key
        let result: DiskWriteResult = withIO { io in
            guard isUsable(&io) else {
                if body == nil { io.events.append(.dropped(key: key, .unavailable)) }
                return .dropped(.unavailable)
            }
            do throws(Errno) {
                guard let bytes = try place(&record, of: body, usedAt: usedAt, &io) else { return .superseded }
                io.events.append(.stored(key: key, bytes: bytes))
                return .written(bytes: bytes)
            } catch {
                if body == nil { io.events.append(.dropped(key: key, .failed(errno: error.code))) }
                return .dropped(.failed(errno: error.code))
            }
        }
        maintenance.schedule(after: configuration.maintenanceDelay)
        return result
    }

    /// - Parameter tells: false where the caller does.
    func refuse(
        _ metadata: EntryMetadata, _ key: DiskKey, _ reason: DiskEvent.DropReason, tells: Bool = true
    ) -> DiskWriteResult {
        let isAny = withIO { io in
            if tells { io.events.append(.dropped(key: key.name, reason)) }
            return isOwnProcess && removeRecords(key, &io) { $0.varyHash == metadata.rowVaryHash }
        }
        if isAny { tellVariant(of: key.name) }
        maintenance.schedule(after: configuration.accessTimeDelay)
        return .dropped(reason)
    }

    /// How long a pass relies on a look at the folder, in nanoseconds: most writes of a burst need none of their own.
    static let lookInterval: UInt64 = 2_000_000

    /// Whether records may be written: the folder is there, made if need be, and it is ours. Within a pass that is looked at
    /// now and then: a write that finds the folder gone makes it again.
    func isUsable(_ io: inout Section) -> Bool {
        guard isOwnProcess, !io.isClosed else { return false }
        guard let lastLook = io.lastLook else { return prepareDirectory(&io, mayMake: true) }
        let now = MonotonicTime.nanoseconds
        if io.directory.identity != nil, now &- lastLook < Self.lookInterval { return true }
        io.lastLook = now
        return prepareDirectory(&io, mayMake: true)
    }

    /// Gives the stored entry with this sequence number another head: a 304, or a pin. The body stays, and is not written again.
    /// False where that very record is not there any more: then nothing is changed.
    ///
    /// - Parameter usedAt: as in `write`.
    func update(
        _ metadata: EntryMetadata, of key: RequestKey, replacing sequence: UInt64, usedAt: UInt64
    ) -> Bool {
        if configuration.isReadOnly { return false }
        let key = key.diskKey
        let isDone = withIO { io -> Bool in
            guard isUsable(&io) else { return false }
            if !catalog.isCertain(key.name) { examine(key.name, &io) }
            let check = IndexRow.check(of: key.digest)
            for row in catalog.read({ $0.rows(of: key.name) }) where row.keyCheck == check && !row.isPartial {
                if update(row, metadata, key.digest, sequence, usedAt, &io) { return true }
            }
            return false
        }
        if isDone { maintenance.schedule(after: configuration.maintenanceDelay) }
        return isDone
    }

    /// False when it is not the record with that sequence.
    private func update(
        _ row: IndexRow, _ metadata: EntryMetadata, _ digest: KeyDigest, _ sequence: UInt64, _ usedAt: UInt64,
        _ io: inout Section
    ) -> Bool {
        do throws(Errno) {
            let update = try writer.append(
                metadata, to: row.name, of: digest, replacing: sequence, keepsURL: configuration.keepsURLs,
                limit: catalog.readLimit)
            switch update {
            case .appended(let header, let allocated):
                let row = IndexRow(header, allocated: allocated, accessedAt: clock.now().recordSeconds)
                catalog.change { $0.put(row, usedAt: usedAt) }
                return true
            case .notFound: return false
            case .mustRewrite: return try rewrite(row.name, metadata, digest, sequence, usedAt, &io)
            case .notRepresentable:
                // The old head is out of date, and the new one cannot be written.
                removeForGood(row, &io)
                io.events.append(.dropped(key: row.key, .notRepresentable))
                return true
            }
        } catch {
            io.events.append(.dropped(key: row.key, .failed(errno: error.code)))
            return false
        }
    }

    /// Writes the record anew in another slot.
    private func rewrite(
        _ name: RecordName, _ metadata: EntryMetadata, _ digest: KeyDigest, _ sequence: UInt64, _ usedAt: UInt64,
        _ io: inout Section
    ) throws(Errno) -> Bool {
        guard case .record(let old) = reader.read(name, .whole, limit: catalog.readLimit),
            old.header.digest == digest, old.header.sequence == sequence, let body = old.body,
            var record = PreparedRecord(
                StoredEntry(metadata: metadata, body: body), for: DiskKey(old.header), keepsURL: configuration.keepsURLs
            )
        else { return false }
        _ = try place(&record, usedAt: usedAt, &io)
        // Another variant by its new head: it was not replaced by that.
        if let row = catalog.read({ $0.row(name) }), name != record.header.name, remove(name, &io) { forget(row, &io) }
        return true
    }

    // MARK: Placing

    /// Writes the record into a free slot of its name, adds its row, and removes what it replaces. Gives what it takes on disk;
    /// nil where a more recent record of its variant is there, which stays.
    private func place(
        _ record: inout PreparedRecord, of body: IncomingBody? = nil, usedAt: UInt64, _ io: inout Section
    ) throws(Errno) -> Int? {
        let allocated = try create(&record, of: body, &io)
        body?.becameRecord()
        let row = IndexRow(record.header, allocated: allocated, accessedAt: clock.now().recordSeconds)
        let replaced = catalog.change { index in
            defer { index.put(row, usedAt: usedAt) }
            return index.rows(of: row.key).filter {
                $0.varyHash == row.varyHash && $0.keyCheck == row.keyCheck && $0.slot != row.slot
            }
        }
        let standings = replaced.map { standing($0.name, beside: record.header) }
        if standings.contains(.moreRecent) {
            if remove(row.name, &io) { forget(row, &io) }
            return nil
        }
        // Only now: the older record is the one to serve until the new one is whole.
        for (old, standing) in zip(replaced, standings) where standing == .replaced && remove(old.name, &io) {
            forget(old, &io)
        }
        if standings.contains(.unrelated) { examine(row.key, &io) }
        return row.bytes
    }

    private enum Standing {
        case replaced, moreRecent, unrelated
    }

    /// What a record is to another one that takes its place by its row. Another process may have stored it after a response that waited
    /// here to be written, or put another variant there. A record from the future is not more recent: the clock was set back since.
    private func standing(_ name: RecordName, beside header: RecordHeader) -> Standing {
        guard case .record(let other) = reader.read(name, .head, limit: catalog.readLimit) else { return .replaced }
        guard other.header.digest == header.digest, other.header.varyHash == header.varyHash else { return .unrelated }
        if other.header.sequence > EntrySequence.number(at: clock.now()) { return .replaced }
        // A pin gives a record a larger number, and makes the answer no newer.
        let isMoreRecent = (other.header.storedAt, other.header.sequence) > (header.storedAt, header.sequence)
        return isMoreRecent ? .moreRecent : .replaced
    }

    private func create(
        _ record: inout PreparedRecord, of body: IncomingBody?, _ io: inout Section
    ) throws(Errno) -> Int {
        let key = record.header.name.key
        if !catalog.isCertain(key) { examine(key, &io) }
        /// Slots where a file was in the way.
        var taken: UInt8 = 0
        var isRetrying = false
        while true {
            record.header.name.slot = try freeSlot(for: record.header, not: taken, &io)
            do throws(Errno) {
                if let body { return try writer.adopt(body, &record) }
                return try writer.create(&record)
            } catch {
                switch error.code {
                case EEXIST where taken.nonzeroBitCount < Int(RecordName.slots):
                    // Another process was here.
                    taken |= 1 << record.header.name.slot
                    examine(key, &io)
                case ENOENT where !isRetrying && prepareDirectory(&io, mayMake: true):
                    // The folder was removed meanwhile, and has been made again.
                    isRetrying = true
                default: throw error
                }
            }
        }
    }

    private func freeSlot(
        for header: RecordHeader, not taken: UInt8, _ io: inout Section
    ) throws(Errno) -> UInt8 {
        let key = header.name.key
        let rows = catalog.read { $0.rows(of: key) }
        let used = rows.reduce(taken) { $0 | 1 << $1.slot }
        let freed = io.log.freedSlots(of: key)
        if let slot = Self.firstFree(used | freed) { return slot }
        if freed != 0 {
            save(&io)
            io.log.giveOut(slotsOf: key)
            if let slot = Self.firstFree(used) { return slot }
        }
        // All slots hold variants: the one used longest ago makes room, unless it is the one to be replaced, which must
        // outlive a failure of the new one.
        let check = IndexRow.check(of: header.digest)
        let others = rows.filter {
            ($0.varyHash != UInt32(truncatingIfNeeded: header.varyHash) || $0.keyCheck != check)
                && taken & 1 << $0.slot == 0
        }
        let oldest = others.min { ($0.lastUse, $0.accessedAt) < ($1.lastUse, $1.accessedAt) }
        guard let oldest, remove(oldest.name, &io) else { throw Errno(EEXIST) }
        forget(oldest, &io)
        io.events.append(.evicted(key: key, bytes: oldest.bytes))
        return oldest.slot
    }

    private static func firstFree(_ used: UInt8) -> UInt8? {
        used == .max ? nil : UInt8((~used).trailingZeroBitCount)
    }

    // MARK: Files and rows

    /// Removes a record's file; true when it is gone. Its row is the caller's to change.
    func remove(_ name: RecordName, _ io: inout Section) -> Bool {
        let failure: Errno? = paths.withRecord(name) { path in
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
        io.log.noteFreed(name)
        return true
    }

    /// Removes a row whose file is gone.
    func forget(_ row: IndexRow, _ io: inout Section) {
        catalog.change { _ = $0.remove(row.name) }
        io.log.noteRemoved(row)
    }
}

extension EntryMetadata {
    /// As rows of the index have it.
    var rowVaryHash: UInt32 { UInt32(truncatingIfNeeded: varyHash) }
}
