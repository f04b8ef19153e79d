import Foundation

/// What the maintenance queue does.
extension PackStore {
    func beginPass(isFlush: Bool, mayMake: Bool) -> Bool {
        maintenance.assertCurrent()
        return withIO { io in
            guard !io.isClosed, prepare(&io) else { return false }
            io.isInPass = true
            return true
        }
    }

    func endPass(isFlush: Bool) {
        maintenance.assertCurrent()
        withIO { io in
            io.isInPass = false
            do throws(Errno) {
                try flushTail(&io)
            } catch {
                io.events.append(.unavailable(.notWritable(path: paths.packs, errno: error.code)))
            }
            dropSuspects(&io)
            removeExpired(&io)
        }
        balance(budget: isFlush ? .max : Self.passBudget)
        let isSaved = withIO { io in
            if io.hasTrash { sweepTrash(&io) }
            let rows = table.withLock { $0.index.count }
            if io.changes > max(1_024, rows / 4) { save(&io) }
            return io.changes == 0
        }
        // The index may have grown above the capacity.
        if isOverCapacity { balance(budget: isFlush ? .max : Self.passBudget) }
        if !isSaved { maintenance.schedule(after: configuration.accessTimeDelay) }
    }

    func close() {
        guard isOwnProcess else { return }
        maintenance.perform {
            withIO { io in
                guard !io.isClosed else { return }
                try? flushTail(&io)
                io.isClosed = true
                if io.folder != nil, io.changes > 0 || table.withLock({ $0.index.dirtyCount > 0 }) { save(&io) }
            }
        }
    }

    private func dropSuspects(_ io: inout Section) {
        let suspects = table.withLock { table in
            defer { table.suspects = [] }
            return table.suspects
        }
        for row in suspects where table.withLock({ $0.isCurrent(row) }) {
            guard case .gone = read(row) else { continue }
            table.withLock { _ = $0.drop(row.name) }
            mark(row, &io)
            io.events.append(.removedCorruptRecord(key: row.key))
        }
    }

    private func removeExpired(_ io: inout Section) {
        let (storageAge, accessAge) = (configuration.maximumStorageAge, configuration.maximumAccessAge)
        guard storageAge != nil || accessAge != nil else { return }
        let now = clock.now().timeIntervalSince1970
        let expired = table.withLock { table in
            var rows: [IndexRow] = []
            table.index.forEachLeastRecentFirst { row in
                let isTooOld = storageAge.map { now - Double(row.storedAt) > $0 + 1 } ?? false
                let isUnused = accessAge.map { now - Double(row.accessedAt) > $0 + 1 } ?? false
                if isTooOld || isUnused { rows.append(row) }
                return true
            }
            for row in rows { table.drop(row.name) }
            return rows
        }
        for row in expired { mark(row, &io) }
    }

    // MARK: Space

    /// Bytes that a pass copies so that space comes back.
    private static let passBudget = 4 << 20

    var isOverCapacity: Bool { table.withLock { $0.footprint > $0.capacity } }

    func evictIfNeeded(now: Bool) {
        if isOverCapacity { balance(budget: now ? .max : Self.passBudget) }
    }

    private enum Step {
        case unlink(Int)
        case evict(bytes: Int)
        case compact(Int)
        /// The pack that is appended to is the emptiest: another one takes its place.
        case closeCurrent
    }

    /// Brings the directory within its capacity, and each pack below a quarter of dead bytes; the rest waits once as many bytes were
    /// copied as the budget has.
    private func balance(budget: Int) {
        var budget = budget
        while budget > 0, let step = table.withLock({ nextStep($0) }) {
            let isDone = withIO { io -> Bool in
                switch step {
                case .unlink(let place): dropPack(place, &io)
                case .evict(let bytes): return evict(bytes, &io)
                case .compact(let place): return compact(place, &budget, &io)
                case .closeCurrent:
                    try? flushTail(&io)
                    table.withLock { $0.current = nil }
                }
                return true
            }
            guard isDone else { return }
        }
        if budget <= 0 { maintenance.schedule(after: 0.001) }
    }

    private func nextStep(_ table: PackTable) -> Step? {
        let isOver = table.footprint > table.capacity
        var emptiest: (place: Int, share: Double)?
        for (place, pack) in table.packs.enumerated() {
            guard let pack, place != table.current, !pack.isLeftAlone else { continue }
            if pack.live == 0 { return .unlink(place) }
            let share = Double(pack.dead) / Double(pack.length)
            if share > emptiest?.share ?? 0 { emptiest = (place, share) }
        }
        guard isOver else { return emptiest.flatMap { $0.share > 0.25 ? .compact($0.place) : nil } }
        let target = table.capacity.share(configuration.lowWaterFraction) - table.overhead
        if table.index.bytes > max(0, target) { return .evict(bytes: table.index.bytes - max(0, target)) }
        if let emptiest, emptiest.share > 0.01 { return .compact(emptiest.place) }
        if let current = table.current, let pack = table.packs[current], pack.dead > 0 { return .closeCurrent }
        return nil
    }

    /// False where nothing can go.
    private func evict(_ bytes: Int, _ io: inout Section) -> Bool {
        try? flushTail(&io)
        let pinnedLimit = capacity.share(configuration.pinnedShare)
        let policy = EvictionPolicy(pinnedLimit: pinnedLimit, batch: 1_024)
        let (victims, empty) = table.withLock { table -> ([IndexRow], Set<UInt16>) in
            var victims = policy.victims(in: table.index, freeing: bytes)
            for row in victims { table.drop(row.name) }
            // What is next in the order of use and lies in the same pack goes along: it would be copied out of the pack just to be
            // evicted soon after.
            while let last = victims.last, let next = policy.victims(in: table.index, freeing: 1).first,
                next.pack == last.pack, Int(next.pack) != table.current
            {
                table.drop(next.name)
                victims.append(next)
            }
            let places = Set(victims.map(\.pack)).filter {
                Int($0) != table.current && table.packs[Int($0)]?.live == 0
            }
            return (victims, places)
        }
        // A pack that is left without a living record goes as a whole.
        for place in empty { dropPack(Int(place), &io) }
        for row in victims {
            if !empty.contains(row.pack) { mark(row, &io) }
            io.events.append(.evicted(key: row.key, bytes: row.bytes))
        }
        return !victims.isEmpty
    }

    /// Copies the living out of a pack, and unlinks it. False where that fails: the pack stays as it is.
    private func compact(_ place: Int, _ budget: inout Int, _ io: inout Section) -> Bool {
        guard let pack = table.withLock({ $0.packs[place] }) else { return true }
        guard let file = pack.file ?? open(place, number: pack.number),
            (try? files.lockFile(file.descriptor, exclusively: true)) == true
        else {
            table.withLock { $0.leaveAlone(place) }
            return true
        }
        budget -= max(1, pack.live)
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: pack.length, alignment: 16)
        defer { memory.deallocate() }
        guard let count = try? files.readFully(file.descriptor, memory, at: 0) else { return false }
        var rows: [IndexRow] = []
        table.withLock { table in
            var position = PackHead.length
            while position + PackRecord.headLength <= count {
                let rest = UnsafeRawBufferPointer(rebasing: memory[position..<count])
                guard let record = PackRecord(rest), record.length <= rest.count else {
                    position += PackRecord.unit
                    continue
                }
                var here: IndexRow?
                table.index.forEachRow(of: record.key) {
                    if Int($0.pack) == place, $0.start == position { here = $0 }
                }
                if let here, record.isIntact(rest, seed: pack.seed(here)), PackRecord.isLiving(rest) {
                    rows.append(here)
                    position += record.length
                } else {
                    // Dead, or not a record at all: its length is not to be relied on.
                    position +=
                        record.isIntact(
                            rest,
                            seed: pack.seed(
                                IndexRow(record, slot: 0, pack: place, start: position, storedAt: 0, accessedAt: 0)))
                        ? record.length : PackRecord.unit
                }
            }
        }
        do throws(Errno) {
            for row in rows {
                try makeRoom(for: row.bytes, &io)
                guard let record = PackRecord(.init(rebasing: memory[row.start...])) else { continue }
                let moved: IndexRow? = table.withLock { table in
                    guard let current = table.current, let target = table.packs[current], table.isCurrent(row)
                    else { return nil }
                    var moved = row
                    moved.pack = UInt16(current)
                    moved.offset = UInt32(target.length / PackRecord.unit)
                    let copy = table.tail.memory + table.tail.count
                    memcpy(copy, memory.baseAddress! + row.start, row.bytes)
                    record.reseal(copy, seed: target.seed(moved))
                    table.tail.count += row.bytes
                    table.setLength(target.length + row.bytes, of: current)
                    table.move(moved)
                    return moved
                }
                if let moved { io.gathered.append(Gathered(row: moved, before: row)) }
            }
            try flushTail(&io)
        } catch {
            io.events.append(.cannotDelete(errno: error.code))
            table.withLock { $0.leaveAlone(place) }
            return false
        }
        // What could not be copied is damaged.
        dropPack(place, &io)
        return true
    }

    // MARK: Files

    /// Writes the index anew, and by renaming in place of the old one.
    private func save(_ io: inout Section) {
        let (index, packs) = table.withLock { table in
            table.index.clearDirty()
            return (table.index, table)
        }
        // Rows name packs by their place, which has no gaps in the file.
        var numbers: [Int] = []
        var listed: [PackIndexFile.Pack] = []
        for (place, pack) in packs.packs.enumerated() {
            numbers.append(listed.count)
            guard let pack else { continue }
            listed.append(
                PackIndexFile.Pack(
                    number: pack.number, secret: pack.secret,
                    covered: place == packs.current ? packs.flushed : pack.length))
        }
        let bytes = PackIndexFile.encode(index, listed) { UInt16(numbers[Int($0)]) }
        do throws(Errno) {
            try? files.unlink(paths.newIndex)
            let descriptor = try files.openFile(paths.newIndex, O_WRONLY | O_CREAT | O_EXCL)
            let failure: Errno? = bytes.withUnsafeBytes { bytes in
                do throws(Errno) {
                    try files.writeFully(descriptor, bytes)
                    return nil
                } catch {
                    return error
                }
            }
            files.closeQuietly(descriptor)
            if let failure { throw failure }
            try files.rename(paths.newIndex, to: paths.index)
        } catch {
            try? files.unlink(paths.newIndex)
        }
        io.changes = 0
        let overhead = overhead
        table.withLock { $0.overhead = overhead }
    }

    /// Deletes what `removeAll` moved away: a file for each 4 MB.
    private func sweepTrash(_ io: inout Section) {
        var folders: [String] = []
        try? files.list(paths.directory) { name in
            let name = String(cString: name)
            if DiskPaths.isTrash(name) { folders.append(paths.directory + "/" + name) }
        }
        for folder in folders {
            guard let status = try? files.status(at: folder), status.kind == .directory else { continue }
            var names: [String] = []
            try? files.list(folder) { if DiskPaths.packNumber($0) != nil { names.append(String(cString: $0)) } }
            for name in names { try? files.unlink(folder + "/" + name) }
            try? files.removeDirectory(folder)
        }
        io.hasTrash = false
    }
}
