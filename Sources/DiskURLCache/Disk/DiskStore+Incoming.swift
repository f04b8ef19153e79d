import Foundation

/// Bodies that are too large to be gathered in memory: written while they arrive, and made records when they are whole.
extension DiskStore {
    /// A file for a body that begins to arrive. Nothing finds it before `adopt`.
    func beginIncoming() throws(Errno) -> IncomingBody {
        guard !configuration.isReadOnly, withIO({ isUsable(&$0) }) else { throw Errno(0) }
        return try IncomingBody(files, paths, space: incoming, locks: passLock == nil)
    }

    /// Makes a record of a body that has arrived whole, in place of that of the same key and variant. As `write` does, it removes
    /// the older one where it refuses this one, and leaves it where writing fails. What is not adopted is the caller's to discard.
    func adopt(
        _ body: IncomingBody, _ metadata: EntryMetadata, for key: RequestKey, usedAt: UInt64
    ) -> DiskWriteResult {
        if configuration.isReadOnly { return .dropped(.unavailable) }
        let key = key.diskKey
        let sum = body.sum
        let largest = largestEntry
        let tooLarge = DiskEvent.DropReason.tooLarge(bytes: sum.length, limit: largest)
        if sum.length > largest { return refuse(metadata, key, tooLarge, tells: false) }
        guard var record = PreparedRecord(metadata, bodyOf: sum, for: key, keepsURL: configuration.keepsURLs),
            record.header.headLength <= RecordWriter.chainLimit(bodyLength: sum.length)
        else { return refuse(metadata, key, .notRepresentable, tells: false) }
        guard let length = record.header.recordLength, length + PreparedRecord.firstHeadLength <= largest
        else { return refuse(metadata, key, tooLarge, tells: false) }
        return write(&record, of: body, usedAt: usedAt)
    }

    // MARK: Leftovers

    /// Deletes what processes that died left behind. A writer who lives holds his file's lock; where files are not locked, as by
    /// apps that may be suspended, a file that was not written for an hour has none.
    func sweepIncoming() {
        for path in incomingPaths() where !incoming.contains(path) {
            guard let status = try? files.status(at: path), status.kind == .regular, status.links == 1 else { continue }
            if passLock == nil {
                guard let file = try? files.openFile(path, O_RDONLY) else { continue }
                if (try? files.lockFile(file, exclusively: true)) == true { try? files.unlink(path) }
                files.closeQuietly(file)
            } else if clock.now().timeIntervalSince1970 - Double(status.modifiedSeconds) > 3600 {
                try? files.unlink(path)
            }
        }
    }

    /// What is arriving anywhere is not to be found after a removal of everything.
    func unlinkIncoming() {
        for path in incomingPaths() {
            guard let status = try? files.status(at: path), status.kind == .regular else { continue }
            try? files.unlink(path)
        }
    }

    private func incomingPaths() -> [String] {
        var found: [String] = []
        try? files.list(paths.directory) { name in
            let name = String(cString: name)
            if DiskPaths.isIncoming(name) { found.append(paths.directory + "/" + name) }
        }
        return found
    }
}
