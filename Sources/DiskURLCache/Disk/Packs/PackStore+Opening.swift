import Foundation

extension PackStore {
    /// Makes sure that the folders are there and that the index is read. Where the folder was replaced nothing that is known of it
    /// holds any more.
    func prepare(_ io: inout Section) -> Bool {
        guard isOwnProcess else { return false }
        if let folder = io.folder, folderIdentity() == folder { return true }
        if io.folder != nil { forget(&io) }
        do throws(DiskStoreError) {
            _ = try CacheDirectory(files, paths).look(mayMake: true)
            try? files.makeDirectory(paths.packs)
            guard let folder = folderIdentity() else { throw .notADirectory(path: paths.packs) }
            io.folder = folder
            io.error = nil
        } catch {
            if io.error != error { io.events.append(.unavailable(error)) }
            io.error = error
            return false
        }
        load(&io)
        return true
    }

    func forget(_ io: inout Section) {
        io.folder = nil
        (io.gathered, io.replaced) = ([], [])
        table.withLock { $0 = PackTable(capacity: $0.capacity) }
    }

    /// What the directory takes besides the packs.
    var overhead: Int {
        let besides: [String] = [paths.directory + "/.", paths.records, paths.packs, paths.index]
        return besides.reduce(0) { sum, path in sum + ((try? files.status(at: path))?.allocated ?? 0) }
    }

    func listPacks() -> [(number: UInt64, length: Int)] {
        var found: [(number: UInt64, length: Int)] = []
        try? files.list(paths.packs) { name in
            guard let number = DiskPaths.packNumber(name) else { return }
            found.append((number, 0))
        }
        found = found.compactMap { pack in
            guard let status = try? files.status(at: paths.pack(pack.number)), status.kind == .regular,
                status.links == 1, status.size >= PackHead.length
            else { return nil }
            return (pack.number, status.size)
        }
        return found
    }

    // MARK: Loading

    /// A living record that was found in a pack.
    private struct Scanned {
        var row: IndexRow
        var sequence: UInt64
    }

    /// Reads the index, and from the packs what it does not cover: all, when it is lost.
    private func load(_ io: inout Section) {
        var table = PackTable(capacity: capacity)
        var lengths: [UInt64: Int] = [:]
        for pack in listPacks() { lengths[pack.number] = pack.length }
        if let bytes = readIndex() {
            if let decoded = PackIndexFile.decode(bytes) {
                var places: [Int?] = []
                for pack in decoded.packs {
                    guard let length = lengths[pack.number], length >= pack.covered else {
                        places.append(nil)
                        continue
                    }
                    lengths[pack.number] = nil
                    places.append(
                        table.add(PackTable.Pack(number: pack.number, secret: pack.secret, length: length)))
                }
                table.index.prepare(for: decoded.rows)
                for number in 0..<decoded.rows {
                    var row = decoded.row(number)
                    guard Int(row.pack) < places.count, let place = places[Int(row.pack)],
                        row.start + row.bytes <= decoded.packs[Int(row.pack)].covered
                    else { continue }
                    row.pack = UInt16(place)
                    table.append(row)
                }
                var scanned: [Scanned] = []
                for (pack, place) in zip(decoded.packs, places) {
                    guard let place, let length = table.packs[place]?.length, length > pack.covered else { continue }
                    scan(place, pack.number, pack.secret, from: pack.covered, to: length, &scanned)
                }
                take(scanned, lengths, &table, &io)
            } else {
                io.events.append(.rebuiltIndex(.rejected))
                take([], lengths, &table, &io)
            }
            bytes.deallocate()
        } else {
            if !lengths.isEmpty { io.events.append(.rebuiltIndex(.missing)) }
            take([], lengths, &table, &io)
        }
        table.overhead = overhead
        chooseCurrent(&table)
        table.isOpen = true
        let replaced = io.replaced
        io.replaced = []
        self.table.withLock { $0 = table }
        // Of two records of one variant, which a kill may leave, the older is not to come back.
        for row in replaced { mark(row, &io) }
    }

    /// Scans the packs that the index does not list, and gives what was scanned its rows.
    private func take(
        _ scanned: [Scanned], _ unlisted: [UInt64: Int], _ table: inout PackTable, _ io: inout Section
    ) {
        var parts = [scanned]
        for (number, length) in unlisted {
            guard let (_, head, _) = openPack(number) else { continue }
            let place = table.add(PackTable.Pack(number: number, secret: head.secret, length: length))
            var part: [Scanned] = []
            scan(place, number, head.secret, from: PackHead.length, to: length, &part)
            parts.append(part)
        }
        // Packs are written one after the other: most often nothing is left to be sorted.
        parts.sort { $0.first?.sequence ?? 0 < $1.first?.sequence ?? 0 }
        var scanned = Array(parts.joined())
        parts = []
        if scanned.isEmpty { return }
        io.changes += scanned.count
        let isSorted = zip(scanned, scanned.dropFirst()).allSatisfy { $0.sequence <= $1.sequence }
        if !isSorted {
            // Places are sorted, not rows: those are eight times as large.
            let order = scanned.indices.map { (scanned[$0].sequence, Int32($0)) }.sorted { $0.0 < $1.0 }
            scanned = order.map { scanned[Int($0.1)] }
        }
        table.index.prepare(for: table.index.count + scanned.count)
        // The larger sequence comes last, and counts. What the index lists was there before what it does not cover.
        for entry in scanned {
            var row = entry.row
            var used: UInt8 = 0
            var older: IndexRow?
            table.index.forEachRow(of: row.key) {
                if $0.varyHash == row.varyHash, $0.keyCheck == row.keyCheck { older = $0 } else { used |= 1 << $0.slot }
            }
            if used == .max { older = table.index.rows(of: row.key).first }
            if let older {
                table.drop(older.name)
                used &= ~(1 << older.slot)
                io.replaced.append(older)
            }
            row.slot = UInt8((~used).trailingZeroBitCount)
            table.append(row)
        }
    }

    private func readIndex() -> UnsafeMutableRawBufferPointer? {
        guard let descriptor = try? files.openFile(paths.index, O_RDONLY) else { return nil }
        defer { files.closeQuietly(descriptor) }
        guard let status = try? files.status(descriptor), status.kind == .regular, status.links == 1,
            status.size <= 4 << 30
        else { return nil }
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: status.size, alignment: 16)
        if (try? files.readFully(descriptor, bytes, at: 0)) == status.size { return bytes }
        bytes.deallocate()
        return nil
    }

    // MARK: Scanning

    /// Adds the living records in a part of a pack. Behind a damaged one the next that is intact is looked for.
    private func scan(
        _ place: Int, _ number: UInt64, _ secret: UInt64, from start: Int, to end: Int, _ scanned: inout [Scanned]
    ) {
        guard let (file, head, _) = openPack(number), head.secret == secret else { return }
        let pack = PackTable.Pack(number: number, secret: secret, length: end)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 16)
        defer { buffer.deallocate() }
        /// Place in the pack of the buffer's first byte, and how much of the buffer is filled.
        var (base, filled) = (start, 0)
        while true {
            let wanted = min(buffer.count - filled, end - base - filled)
            let count =
                (try? files.readFully(
                    file.descriptor, .init(rebasing: buffer[filled..<filled + wanted]), at: base + filled)) ?? 0
            filled += count
            let isLast = count < wanted || base + filled == end
            var position = 0
            while position + PackRecord.headLength <= filled {
                let rest = UnsafeRawBufferPointer(rebasing: buffer[position..<filled])
                guard let record = PackRecord(rest) else {
                    position += PackRecord.unit
                    continue
                }
                if record.length > rest.count {
                    if !isLast { break }
                    position += PackRecord.unit
                    continue
                }
                let storedAt = rest.loadUnaligned(fromByteOffset: PackRecord.headLength, as: UInt64.self)
                let date = Date(timeIntervalSinceReferenceDate: Double(bitPattern: UInt64(littleEndian: storedAt)))
                let row = IndexRow(
                    record, slot: 0, pack: place, start: base + position, storedAt: date.recordSeconds,
                    accessedAt: date.recordSeconds)
                guard record.isIntact(rest, seed: pack.seed(row)) else {
                    position += PackRecord.unit
                    continue
                }
                if PackRecord.isLiving(rest) { scanned.append(Scanned(row: row, sequence: record.sequence)) }
                position += record.length
            }
            if isLast { return }
            memmove(buffer.baseAddress!, buffer.baseAddress! + position, filled - position)
            base += position
            filled -= position
        }
    }

    /// Goes on with a pack that nobody else has, where there is one that is not full.
    private func chooseCurrent(_ table: inout PackTable) {
        let limit = packSize * 3 / 4
        let open = table.packs.indices.filter { (table.packs[$0]?.length ?? .max) < limit }
        for place in open.prefix(4) {
            guard let pack = table.packs[place], let (file, head, length) = openPack(pack.number),
                head.secret == pack.secret, (try? files.lockFile(file.descriptor, exclusively: true)) == true
            else { continue }
            // A record that was torn stays as dead bytes; the next one begins behind it.
            let end = (length + 7) & ~7
            table.setLength(end, of: place)
            table.keep(file, of: place)
            (table.current, table.flushed) = (place, end)
            return
        }
    }
}
