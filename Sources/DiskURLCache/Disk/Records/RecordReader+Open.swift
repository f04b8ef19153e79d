import Foundation

// Large bodies: verified in pieces, and left in the file.

extension RecordReader {
    enum Opening {
        case record(LoadedRecord, OpenBody)
        case damaged
        /// Missing, not ours, or not to be read now.
        case notFound
    }

    /// Opens a record and verifies it: the heads, then the body piece by piece. What is read later comes from the same open file,
    /// whose bytes are never changed by anybody who keeps to the format.
    func open(_ name: RecordName, limit: Int) -> Opening {
        let opened = paths.withRecord(name) { path in (try? files.openFile(path, O_RDONLY)).map { OpenFile($0, files) }
        }
        guard let opened else { return .notFound }
        switch read(opened.file, name, .head, limit: limit) {
        case .record(let record):
            let length = record.header.bodyLength
            let start = record.status.size - record.chainLength - length
            switch checksum(of: opened.file, start: start, length: length) {
            case record.header.bodyChecksum?:
                return .record(record, OpenBody(count: length, of: opened) { opened.bytes($0, from: start) })
            case nil: return .notFound
            default: return .damaged
            }
        case .damaged: return .damaged
        case .missing, .unreadable, .foreign: return .notFound
        }
    }

    /// Nil where the system does not let us read; of other bytes where the file ends early.
    private func checksum(of file: Int32, start: Int, length: Int) -> UInt64? {
        let pieceLength = 128 << 10
        guard let memory = malloc(pieceLength) else { return nil }
        defer { free(memory) }
        var checksum = Checksum()
        var done = 0
        while true {
            let buffer = UnsafeMutableRawBufferPointer(start: memory, count: min(pieceLength, length - done))
            guard let count = try? files.readFully(file, buffer, at: start + done) else { return nil }
            done += count
            let piece = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            if done == length || count < buffer.count { return checksum.finish(piece) }
            checksum.update(piece)
        }
    }
}

/// A file that is closed when nobody reads it any more.
final class OpenFile: Sendable {
    let file: Int32
    private let files: any FileSystem

    init(_ file: Int32, _ files: any FileSystem) {
        self.file = file
        self.files = files
    }

    deinit { files.closeQuietly(file) }

    /// Nil where they cannot be read, or not all of them.
    func bytes(_ range: Range<Int>, from start: Int) -> Data? {
        guard !range.isEmpty else { return Data() }
        guard let memory = malloc(range.count) else { return nil }
        let buffer = UnsafeMutableRawBufferPointer(start: memory, count: range.count)
        guard (try? files.readFully(file, buffer, at: start + range.lowerBound)) == range.count else {
            free(memory)
            return nil
        }
        return Data(bytesNoCopy: memory, count: range.count, deallocator: .free)
    }
}
