import Foundation

/// The file `secondary.journal`: what caches that are not the maintainer changed. The maintainer reads it.
///
/// Writers take a shared lock of the file, the maintainer an exclusive one, and nobody waits for either. So no row is lost between
/// the last read and the truncation, and a process that is stopped with the lock held stops no other.
struct SecondaryFile: Sendable {
    let files: any FileSystem
    let paths: DiskPaths

    /// More than this is not read: the maintainer lists the records instead.
    private static let maximumLength = 16 << 20

    /// False when the maintainer is reading just now, or the file cannot be written: the rows are to be kept.
    func append(_ rows: [JournalRow]) -> Bool {
        var writer = ByteWriter(capacity: rows.count * JournalRow.length)
        for row in rows { row.encode(to: &writer, seed: 0) }
        do throws(Errno) {
            let file = try files.openFile(paths.secondary, O_WRONLY | O_APPEND | O_CREAT)
            defer { files.closeQuietly(file) }
            let status = try files.status(file)
            guard status.kind == .regular, status.links == 1 else { return false }
            if status.permissions != 0o600 { try files.setPermissions(file, 0o600) }
            guard try files.lockFile(file, exclusively: false) else { return false }
            let failure: Errno? = writer.withUnsafeBytes { buffer in
                do throws(Errno) {
                    try files.writeFully(file, buffer)
                    return nil
                } catch {
                    return error
                }
            }
            return failure == nil
        } catch {
            return false
        }
    }

    /// Whether there is something to read; one system call.
    var isEmpty: Bool {
        guard let status = try? files.status(at: paths.secondary) else { return true }
        return status.kind != .regular || status.size == 0
    }

    enum Taking {
        case nothing
        /// Somebody is writing just now.
        case busy
        case taken
    }

    /// Hands over the rows, and empties the file after `apply` is done with them. `isWhole` is false when some could not be
    /// read: then only a listing of the records tells what changed.
    func take(_ apply: (_ rows: [JournalRow], _ isWhole: Bool) -> Void) -> Taking {
        if isEmpty { return .nothing }
        do throws(Errno) {
            let file = try files.openFile(paths.secondary, O_RDWR)
            defer { files.closeQuietly(file) }
            let status = try files.status(file)
            guard status.kind == .regular, status.links == 1 else { return .nothing }
            guard try files.lockFile(file, exclusively: true) else { return .busy }
            // Anew, now that nobody adds to it.
            let length = try files.status(file).size
            if length > Self.maximumLength {
                apply([], false)
            } else {
                let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(length, 1), alignment: 8)
                defer { buffer.deallocate() }
                let count = try files.readFully(
                    file, UnsafeMutableRawBufferPointer(rebasing: buffer[..<length]), at: 0)
                let (rows, read) = JournalRow.decodeAll(
                    UnsafeRawBufferPointer(rebasing: buffer[..<count]), seed: 0)
                apply(rows, read == length)
            }
            try files.truncate(file, 0)
            return .taken
        } catch {
            return .busy
        }
    }
}
