import Foundation

extension PackStore {
    // MARK: Storing

    /// Within a pass records are gathered, and lookups find them in memory until they are written; else the record is written when
    /// this returns.
    @discardableResult
    func write(_ entry: StoredEntry, for key: RequestKey, usedAt: UInt64) -> DiskWriteResult {
        let diskKey = key.diskKey
        let largest = largestEntry
        guard entry.body.count <= largest, largest > 0 else {
            return refuse(entry.metadata, diskKey, .tooLarge(bytes: entry.body.count, limit: largest))
        }
        var writer = ByteWriter(capacity: 800)
        guard entry.metadata.placement == .memoryAndDisk,
            PackMetadata.write(entry.metadata, to: &writer, keepsURL: configuration.keepsURLs)
        else { return refuse(entry.metadata, diskKey, .notRepresentable) }
        let record = PackRecord(
            entry.metadata, diskKey, metadataLength: writer.count, bodyLength: entry.body.count)
        let storedAt = entry.metadata.storedAt.recordSeconds
        return withIO { io in
            guard isOwnProcess, !io.isClosed, io.isInPass || prepare(&io) else {
                io.events.append(.dropped(key: record.key, .unavailable))
                return .dropped(.unavailable)
            }
            do throws(Errno) {
                try makeRoom(for: record.length, &io)
                let replaced = writer.withUnsafeBytes {
                    gather(record, $0, entry.body, storedAt: storedAt, usedAt: usedAt, &io)
                }
                io.replaced += replaced
                if !io.isInPass { try flushTail(&io) }
                io.events.append(.stored(key: record.key, bytes: record.length))
                return .written(bytes: record.length)
            } catch {
                io.events.append(.dropped(key: record.key, .failed(errno: error.code)))
                return .dropped(.failed(errno: error.code))
            }
        }
    }

    private func refuse(_ metadata: EntryMetadata, _ key: DiskKey, _ reason: DiskEvent.DropReason) -> DiskWriteResult {
        withIO { io in
            io.events.append(.dropped(key: key.name, reason))
            remove(key, &io) { $0.varyHash == metadata.rowVaryHash }
        }
        return .dropped(reason)
    }

    /// Makes sure that there is a pack to append to, and that what comes next can be gathered for it.
    func makeRoom(for length: Int, _ io: inout Section) throws(Errno) {
        let packSize = packSize
        let (isFull, mustFlush) = table.withLock { table in
            guard let current = table.current, let pack = table.packs[current] else { return (true, false) }
            return (pack.length + length > packSize, table.tail.count + length > PackTail.capacity)
        }
        if isFull || mustFlush { try flushTail(&io) }
        if isFull { try beginPack() }
    }

    private func beginPack() throws(Errno) {
        let head = PackHead(number: .random(in: 0 ... .max))
        let descriptor = try files.openFile(paths.pack(head.number), O_RDWR | O_CREAT | O_EXCL)
        let file = PackFile(descriptor, files)
        let failure: Errno? = head.bytes.withUnsafeBytes { bytes in
            do throws(Errno) {
                // Who lives holds it: the others leave the pack where it is.
                guard try files.lockFile(descriptor, exclusively: true) else { throw Errno(EWOULDBLOCK) }
                try files.writeFully(descriptor, bytes, at: 0)
                return nil
            } catch {
                return error
            }
        }
        if let failure {
            try? files.unlink(paths.pack(head.number))
            throw failure
        }
        try table.withLock { table -> Result<Void, Errno> in
            // Rows have 16 bits for the place of a pack.
            guard table.packs.count < 65_000 else { return .failure(Errno(EMFILE)) }
            table.current = table.add(
                PackTable.Pack(number: head.number, secret: head.secret, length: PackHead.length, file: file))
            table.flushed = PackHead.length
            return .success(())
        }.get()
    }

    /// Appends a record in memory and gives it a row; gives the rows that it replaces, which are in the index no more.
    private func gather(
        _ record: PackRecord, _ metadata: UnsafeRawBufferPointer, _ body: Data, storedAt: UInt32, usedAt: UInt64,
        _ io: inout Section
    ) -> [IndexRow] {
        let accessedAt = clock.now().recordSeconds
        io.changes += 1
        return table.withLock { table in
            guard let current = table.current, let pack = table.packs[current] else { return [] }
            var row = IndexRow(
                record, slot: 0, pack: current, start: pack.length, storedAt: storedAt, accessedAt: accessedAt)
            record.write(to: table.tail.memory + table.tail.count, metadata, body, seed: pack.seed(row))
            table.tail.count += record.length
            table.setLength(pack.length + record.length, of: current)
            var replaced: [IndexRow] = []
            var used: UInt8 = 0
            table.index.forEachRow(of: row.key) {
                if $0.varyHash == row.varyHash, $0.keyCheck == row.keyCheck {
                    replaced.append($0)
                } else {
                    used |= 1 << $0.slot
                }
            }
            if used == .max, let oldest = table.index.rows(of: row.key).min(by: { $0.lastUse < $1.lastUse }) {
                // All places of the name hold variants: the one used longest ago makes room.
                replaced.append(oldest)
                used &= ~(1 << oldest.slot)
            }
            for old in replaced { table.drop(old.name) }
            row.slot = UInt8((~used).trailingZeroBitCount)
            table.put(row, usedAt: usedAt)
            io.gathered.append(Gathered(row: row, before: replaced.first))
            return replaced
        }
    }

    /// Writes what was gathered by one call, and then marks dead what it replaced. Where writing fails the older records stay.
    func flushTail(_ io: inout Section) throws(Errno) {
        let tail = table.withLock { table in
            table.current.flatMap { current in
                table.packs[current]?.file.map { ($0, table.tail, table.flushed, current) }
            }
        }
        let (gathered, replaced) = (io.gathered, io.replaced)
        (io.gathered, io.replaced) = ([], [])
        if let (file, tail, flushed, current) = tail, tail.count > 0 {
            do throws(Errno) {
                // Only who holds `io` changes what was gathered.
                try files.writeFully(file.descriptor, .init(start: tail.memory, count: tail.count), at: flushed)
            } catch {
                table.withLock { table in
                    table.tail.count = 0
                    table.setLength(table.flushed, of: current)
                    for entry in gathered where table.isCurrent(entry.row) {
                        table.drop(entry.row.name)
                        if let before = entry.before { table.put(before, usedAt: before.lastUse) }
                    }
                }
                throw error
            }
            table.withLock { table in
                table.flushed += table.tail.count
                table.tail.count = 0
            }
        }
        for row in replaced { mark(row, &io) }
    }

    // MARK: Marking

    /// Makes a record dead, whose row is in the index no more. Where that cannot be written the pack goes with all that is in it: what
    /// was removed must not come back.
    func mark(_ row: IndexRow, _ io: inout Section) {
        io.changes += 1
        let place = table.withLock { table -> (file: PackFile?, number: UInt64)? in
            if let bytes = table.gathered(row) {
                bytes.storeBytes(of: PackRecord.dead.littleEndian, as: UInt64.self)
                return nil
            }
            return table.packs[Int(row.pack)].map { ($0.file, $0.number) }
        }
        guard let place else { return }
        let file = place.file ?? open(Int(row.pack), number: place.number)
        let failure: Errno? = withUnsafeBytes(of: PackRecord.dead.littleEndian) { bytes in
            guard let file else { return Errno(ENOENT) }
            do throws(Errno) {
                try files.writeFully(file.descriptor, bytes, at: row.start)
                return nil
            } catch {
                return error
            }
        }
        guard let failure, !failure.isMissing else { return }
        io.events.append(.cannotDelete(errno: failure.code))
        dropPack(Int(row.pack), &io)
    }

    /// Unlinks a pack, and drops the rows of what was in it.
    func dropPack(_ place: Int, _ io: inout Section) {
        let number = table.withLock { $0.packs[place]?.number }
        guard let number else { return }
        do throws(Errno) {
            try files.unlink(paths.pack(number))
        } catch {
            guard error.isMissing else {
                io.events.append(.cannotDelete(errno: error.code))
                return table.withLock { $0.leaveAlone(place) }
            }
        }
        table.withLock { table in
            if table.packs[place]?.live != 0 {
                var lost: [RecordName] = []
                table.index.forEachLeastRecentFirst { row in
                    if Int(row.pack) == place { lost.append(row.name) }
                    return true
                }
                for name in lost { table.drop(name) }
            }
            if table.current == place { table.tail.count = 0 }
            table.remove(place)
        }
        io.gathered.removeAll { Int($0.row.pack) == place }
        io.changes += 1
    }

    // MARK: Changing and removing

    /// Writes the entry anew: bodies are small.
    func update(_ metadata: EntryMetadata, of key: RequestKey, replacing sequence: UInt64, usedAt: UInt64) -> Bool {
        guard let row = row(of: key, sequence: sequence), case .record(_, _, let body) = read(row) else { return false }
        let result = write(StoredEntry(metadata: metadata, body: body), for: key, usedAt: usedAt)
        guard case .written = result else { return false }
        // Another variant by its new head: it was not replaced by that.
        withIO { io in
            if table.withLock({ $0.isCurrent(row) ? $0.drop(row.name) : nil }) != nil { mark(row, &io) }
        }
        return true
    }

    private func row(of key: RequestKey, sequence: UInt64) -> IndexRow? {
        table.withLock { $0.index.rows(of: key.name) }.first { row in
            guard case .record(let record, _, _) = read(row) else { return false }
            return record.sequence == sequence && record.digest == key.digest
        }
    }

    func remove(_ key: RequestKey) {
        withIO { if prepare(&$0) { remove(key.diskKey, &$0) { _ in true } } }
    }

    func remove(_ key: RequestKey, variant: VaryKey) {
        let hash = UInt32(truncatingIfNeeded: variant.recordHash)
        withIO { if prepare(&$0) { remove(key.diskKey, &$0) { $0.varyHash == hash } } }
    }

    func remove(_ key: RequestKey, sequence: UInt64) {
        withIO { io in
            guard prepare(&io), let found = row(of: key, sequence: sequence) else { return }
            remove(key.diskKey, &io) { $0.isSameRecord(as: found) }
        }
    }

    /// When this returns the records are dead in their files.
    private func remove(_ key: DiskKey, _ io: inout Section, where isRemoved: (IndexRow) -> Bool) {
        guard isOwnProcess else { return }
        // An older version that is to be marked once its successor is written must not outlive this.
        if !io.replaced.isEmpty { try? flushTail(&io) }
        let check = IndexRow.check(of: key.digest)
        for row in table.withLock({ $0.index.rows(of: key.name) }) where row.keyCheck == check && isRemoved(row) {
            table.withLock { _ = $0.drop(row.name) }
            mark(row, &io)
        }
        maintenance.schedule(after: configuration.accessTimeDelay)
    }

    func remove(matching criteria: DiskCriteria) {
        withIO { io in
            guard isOwnProcess, prepare(&io) else { return }
            try? flushTail(&io)
            var rows: [(row: IndexRow, isCertain: Bool)] = []
            table.withLock { table in
                table.index.forEachLeastRecentFirst { row in
                    switch criteria.judge(row) {
                    case .matches: rows.append((row, true))
                    case .mayMatch: rows.append((row, false))
                    case .doesNotMatch: break
                    }
                    return true
                }
            }
            for (row, isCertain) in rows {
                if !isCertain {
                    guard case .record(_, let metadata, _) = read(row), criteria.matches(metadata) else { continue }
                }
                table.withLock { _ = $0.drop(row.name) }
                mark(row, &io)
            }
        }
        maintenance.schedule(after: configuration.accessTimeDelay)
    }

    /// Moves the folder away, in the same time at any number of entries; its few files are deleted later.
    func removeAll() {
        withIO { io in
            guard isOwnProcess, prepare(&io) else { return }
            do throws(Errno) {
                try files.rename(paths.packs, to: paths.newTrash())
            } catch {
                guard error.isMissing else { return io.events.append(.cannotDelete(errno: error.code)) }
            }
            io.hasTrash = true
            try? files.unlink(paths.index)
            forget(&io)
            _ = prepare(&io)
        }
        maintenance.schedule(after: configuration.maintenanceDelay)
    }
}
