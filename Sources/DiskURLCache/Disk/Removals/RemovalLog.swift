import Foundation

/// The file `removals`: what each cache on the directory removed, for all others to read (`OnDiskFormat.md`).
///
/// Who appends holds a shared lock on the open file, who begins it anew an exclusive one; who reads holds none. Rows have a
/// place that grows for ever, so that a reader goes on where it was after the file was begun anew with its last rows.
struct RemovalLog: Sendable {
    let files: any FileSystem
    let paths: DiskPaths
    /// False where no file may be locked now: rows are whole by themselves, as on a file system without locks.
    var mayLock: @Sendable () -> Bool = { true }

    struct Header: Sendable, Hashable {
        /// Tells this log from one that was begun without the rows of the one before.
        var token: UInt64
        /// The place of the first row.
        var base: UInt64 = 0
        /// Of the `SharedGeneration`; -1 for none.
        var segment: Int32 = -1

        static let length = 40
        static let magic: UInt64 = 0x4455_5243_5245_4D31

        func encode(to output: inout ByteWriter) {
            let start = output.count
            output.append(Self.magic.bigEndian)
            output.append(token)
            output.append(base)
            output.append(segment)
            output.append(UInt32(0))
            let sum = output.withUnsafeBytes(from: start) { Checksum.of($0) }
            output.append(sum)
        }

        static func decode(_ bytes: UnsafeRawBufferPointer) -> Header? {
            var reader = ByteReader(bytes)
            guard bytes.count == length, reader.number(UInt64.self)?.bigEndian == magic,
                let token = reader.number(UInt64.self), let base = reader.number(UInt64.self), base < 1 << 62,
                let segment = reader.number(Int32.self), reader.number(UInt32.self) == 0,
                let sum = reader.number(UInt64.self),
                sum == Checksum.of(UnsafeRawBufferPointer(rebasing: bytes[..<(length - 8)]))
            else { return nil }
            return Header(token: token, base: base, segment: segment)
        }
    }

    /// More than this is not read: then everything counts as removed.
    private static let maximumLength = 1 << 20

    /// The largest file, in bytes: a small share of the capacity, towards which it counts. One block costs nothing.
    static func limit(capacity: Int) -> Int {
        // An inspector does not know the capacity, and is to leave the directory no larger than it was.
        if capacity == .max { return 4_096 }
        return max(4_096, min(64 << 10, capacity / 64))
    }

    // MARK: Writing

    /// Gives the header under which the row stands; nil when it could not be written.
    func append(_ row: RemovalRow, limit: Int) -> Header? {
        var writer = ByteWriter(capacity: RemovalRow.length)
        row.encode(to: &writer)
        do throws(Errno) {
            for _ in 0..<4 {
                let header = try withFile(O_APPEND, exclusively: false) { file, status throws(Errno) -> Header? in
                    guard let header = try self.header(of: file, status), status.size + RemovalRow.length <= limit
                    else {
                        return nil
                    }
                    do throws(Errno) {
                        try write(writer, to: file)
                    } catch {
                        spoil(file, status)
                        throw error
                    }
                    return header
                }
                if let header { return header }
                try beginAnew(limit: limit)
            }
        } catch {
            // Told by other means.
        }
        return nil
    }

    /// Begins the file anew with its last rows, or, where it is damaged, without any.
    private func beginAnew(limit: Int) throws(Errno) {
        try withFile(0, exclusively: true) { file, status throws(Errno) in
            let old = try self.header(of: file, status)
            // Another cache was first.
            if old != nil, status.size + RemovalRow.length <= limit { return }
            var header = old ?? Header(token: .random(in: .min ... .max))
            var output = ByteWriter()
            var kept: [UInt8] = []
            if old != nil {
                let rows = (status.size - Header.length) / RemovalRow.length
                let keptRows = min(rows, limit / 2 / RemovalRow.length)
                header.base += UInt64((rows - keptRows) * RemovalRow.length)
                kept = try read(file, at: status.size - keptRows * RemovalRow.length, keptRows * RemovalRow.length)
            }
            header.encode(to: &output)
            kept.withUnsafeBytes { output.append($0) }
            do throws(Errno) {
                try? files.unlink(paths.newRemovals)
                let new = try files.openFile(paths.newRemovals, O_WRONLY | O_CREAT | O_EXCL)
                defer { files.closeQuietly(new) }
                try write(output, to: new)
                try files.rename(paths.newRemovals, to: paths.removals)
            } catch {
                // A full disk, say.
                try? files.unlink(paths.newRemovals)
                spoil(file, status)
                throw error
            }
        }
    }

    /// Cuts the file to less than a header, which says to all that everything may have been removed: that needs no room. Each time
    /// to another length, so that who has looked already sees that there is something new.
    private func spoil(_ file: Int32, _ status: FileStatus) {
        let length = status.size < Header.length ? status.size % (Header.length - 1) + 1 : 1
        try? files.truncate(file, length)
    }

    /// Removes what a process left behind that was killed while it began the file anew. Not while another one does so now.
    func sweep() {
        guard (try? files.status(at: paths.newRemovals)) != nil else { return }
        try? withFile(0, exclusively: true) { _, _ throws(Errno) in try? files.unlink(paths.newRemovals) }
    }

    /// Lets `choose` put the number of a segment into the header, while nobody else does.
    func choose(_ choose: (Header) -> Int32) -> Header? {
        do throws(Errno) {
            return try withFile(0, exclusively: true) { file, status throws(Errno) -> Header? in
                let old = try self.header(of: file, status)
                var header = old ?? Header(token: .random(in: .min ... .max))
                header.segment = choose(header)
                if header == old { return header }
                var writer = ByteWriter(capacity: Header.length)
                header.encode(to: &writer)
                if old == nil { try files.truncate(file, 0) }
                try write(writer, to: file)
                return header
            }
        } catch {
            return nil
        }
    }

    /// Calls with the open file, locked, and its status. Nobody waits long: a process that was stopped may hold the lock.
    private func withFile<Result>(
        _ flags: Int32, exclusively: Bool, _ body: (Int32, FileStatus) throws(Errno) -> Result
    ) throws(Errno) -> Result {
        for _ in 0..<20 {
            let file = try files.openFile(paths.removals, O_RDWR | O_CREAT | flags)
            defer { files.closeQuietly(file) }
            var status = try files.status(file)
            guard status.kind == .regular, status.links == 1 else { throw Errno(ELOOP) }
            if status.permissions != 0o600 { try files.setPermissions(file, 0o600) }
            do throws(Errno) {
                var isLocked = true
                if mayLock() { isLocked = try files.lockFile(file, exclusively: exclusively) }
                guard isLocked else {
                    usleep(500)
                    continue
                }
            } catch {
                // A file system without locks: rows are whole by themselves.
                guard error.code == ENOLCK || error.code == ENOTSUP || error.code == ENOSYS else { throw error }
            }
            // Begun anew before it was locked: rows here would be read by nobody.
            guard let named = try? files.status(at: paths.removals), named.identity == status.identity else { continue }
            status = try files.status(file)
            return try body(file, status)
        }
        throw Errno(EWOULDBLOCK)
    }

    private func write(_ output: ByteWriter, to file: Int32) throws(Errno) {
        let failure: Errno? = output.withUnsafeBytes { bytes in
            do throws(Errno) {
                try files.writeFully(file, bytes)
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }

    // MARK: Reading

    /// Nil where it is not a log of ours, or not a whole one.
    private func header(of file: Int32, _ status: FileStatus) throws(Errno) -> Header? {
        guard status.size >= Header.length, status.size <= Self.maximumLength,
            (status.size - Header.length) % RemovalRow.length == 0
        else { return nil }
        return try read(file, at: 0, Header.length).withUnsafeBytes { Header.decode($0) }
    }

    private func read(_ file: Int32, at offset: Int, _ length: Int) throws(Errno) -> [UInt8] {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(length, 1), alignment: 8)
        defer { buffer.deallocate() }
        let count = try files.readFully(file, UnsafeMutableRawBufferPointer(rebasing: buffer[..<length]), at: offset)
        return Array(buffer[..<count])
    }

    /// How far a cache has read.
    struct Position: Sendable, Hashable {
        var token: UInt64
        var place: UInt64
    }

    /// What the file was when it was last looked at: the same again needs no reading.
    struct Look: Sendable, Hashable {
        var identity: FileIdentity
        var size: Int
        var modified: Int

        init(_ status: FileStatus) {
            (identity, size, modified) = (status.identity, status.size, status.modified)
        }
    }

    struct State: Sendable {
        /// Nil before the first look.
        var look: Look??
        /// Nil where there was no log of ours.
        var position: Position?
        var header: Header?
    }

    enum News: Sendable, Hashable {
        case removed([SharedRemoval])
        /// Or anything: rows may be lost.
        case everything
    }

    /// What caches other than `writer` removed since the last time; nil for nothing. The first time only notes how far the
    /// log goes.
    /// - Parameter isCertain: there is something to read, whatever the file looks like.
    func news(_ state: inout State, for writer: UInt64, isCertain: Bool) -> News? {
        let status = try? files.status(at: paths.removals)
        let isFirst = state.look == nil
        // Nothing, or a file that was just made.
        guard let status, status.kind == .regular, status.links == 1, status.size > 0 else {
            defer { (state.position, state.header) = (nil, nil) }
            state.look = .some(nil)
            return state.position == nil ? nil : .everything
        }
        let look = Look(status)
        if !isCertain, state.look == .some(look) { return nil }
        let last = state.position
        let reading = read(from: isFirst ? nil : last ?? Position(token: 0, place: 0), anyToken: last == nil)
        state.look = reading.map { .some($0.look) } ?? .some(look)
        state.header = reading?.header
        state.position = reading?.end
        guard let reading else { return isFirst ? nil : .everything }
        if isFirst { return nil }
        guard let rows = reading.rows else { return .everything }
        let removals = rows.filter { $0.writer != writer }.map(\.removal)
        return removals.isEmpty ? nil : .removed(removals)
    }

    private struct Reading {
        var look: Look
        var header: Header
        var end: Position
        /// Nil when some are lost.
        var rows: [RemovalRow]?
    }

    /// - Parameters:
    ///   - position: nil to read no rows.
    ///   - anyToken: the position is that of any log: its rows from the very first one on.
    private func read(from position: Position?, anyToken: Bool) -> Reading? {
        do throws(Errno) {
            let file = try files.openFile(paths.removals, O_RDONLY)
            defer { files.closeQuietly(file) }
            let status = try files.status(file)
            guard status.kind == .regular, status.links == 1, status.size >= Header.length,
                status.size <= Self.maximumLength,
                let header = try read(file, at: 0, Header.length).withUnsafeBytes({ Header.decode($0) })
            else { return nil }
            let length = (status.size - Header.length) / RemovalRow.length * RemovalRow.length
            let end = Position(token: header.token, place: header.base + UInt64(length))
            var reading = Reading(
                look: Look(status), header: header, end: end, rows: nil)
            guard let position, anyToken || position.token == header.token, position.place >= header.base,
                position.place <= end.place
            else { return reading }
            let count = Int(end.place - position.place)
            let bytes = try read(file, at: Header.length + length - count, count)
            reading.rows = bytes.withUnsafeBytes { Self.rows($0, count: count) }
            return reading
        } catch {
            return nil
        }
    }

    private static func rows(_ bytes: UnsafeRawBufferPointer, count: Int) -> [RemovalRow]? {
        guard bytes.count == count, count % RemovalRow.length == 0 else { return nil }
        var rows: [RemovalRow] = []
        for start in stride(from: 0, to: count, by: RemovalRow.length) {
            let row = RemovalRow.decode(UnsafeRawBufferPointer(rebasing: bytes[start..<start + RemovalRow.length]))
            guard let row else { return nil }
            rows.append(row)
        }
        return rows
    }
}
