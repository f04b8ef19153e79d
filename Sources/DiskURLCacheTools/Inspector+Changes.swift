import DiskURLCache
import Foundation

extension DiskURLCache.Inspector {
    /// Removes records; a program that uses the cache does not find them any more. A record that was replaced since it
    /// was listed, or that cannot be removed, stays. Runs on the caller's thread.
    /// - Parameters:
    ///   - records: as `records(verifyingBodies:by:progress:)` listed them.
    ///   - progress: called with the number of records tried, and their total.
    /// - Returns: how many records were removed.
    @discardableResult
    public func remove(_ records: [Record], progress: (_ done: Int, _ total: Int) -> Void = { _, _ in }) -> Int {
        guard !records.isEmpty else { return 0 }
        let store = open()
        defer { store.close() }
        store.flush()
        return remove(records, from: store, progress: progress)
    }

    private func remove(
        _ records: [Record], from store: DiskStore, progress: (_ done: Int, _ total: Int) -> Void
    ) -> Int {
        var removed = 0
        for (done, record) in records.enumerated() {
            progress(done, records.count)
            switch store.removeRecord(record.name, sequence: record.sequence) {
            case .removed: removed += 1
            // A cache removes what is torn by itself, when it is opened.
            case .notThere where record.problem?.code == .damaged: removed += 1
            case .notThere, .kept: break
            }
        }
        progress(records.count, records.count)
        store.flush()
        return removed
    }

    /// Removes the least recently used records until the directory takes no more than a number of bytes; damaged ones
    /// first, and pinned ones last. With 0 all records are removed; folders and index files stay, and take some bytes.
    /// Files that a cache does not touch (`DiskURLCache.Error.Code.foreign`, or not readable) stay, and no other record
    /// goes for the space that they take.
    /// - Returns: the number of records removed, and the bytes that the directory takes now.
    /// - Throws: when the directory cannot be read or written.
    public func trim(
        toBytes bytes: Int, progress: (_ done: Int, _ total: Int) -> Void = { _, _ in }
    ) throws(DiskURLCache.Error) -> (removed: Int, bytesOnDisk: Int) {
        let store = open()
        defer { store.close() }
        store.flush()
        var removed = 0
        // A second pass is needed if the removals made the file `changes` grow, which tells other processes about them.
        for _ in 0..<3 {
            let victims = try recordsToTrim(toBytes: bytes)
            if victims.isEmpty { break }
            try checkWritable()
            removed += remove(victims, from: store, progress: progress)
        }
        let left = try records()
        if left.isEmpty { store.replaceEmptyFolder(bytes) }
        return (removed, left.reduce(overheadOnDisk) { $0 + $1.bytesOnDisk })
    }

    /// The records that ``trim(toBytes:progress:)`` would remove now, in that order.
    /// - Throws: when the directory cannot be read.
    public func recordsToTrim(toBytes bytes: Int) throws(DiskURLCache.Error) -> [Record] {
        let leastRecentFirst = try records().reversed().filter { $0.problem == nil || $0.problem?.code == .damaged }
        var total = leastRecentFirst.reduce(overheadOnDisk) { $0 + $1.bytesOnDisk }
        let damaged = leastRecentFirst.filter { $0.problem != nil }
        let intact = leastRecentFirst.filter { $0.problem == nil }
        var victims: [Record] = []
        for record in damaged + intact.filter({ !$0.isPinned }) + intact.filter(\.isPinned) where total > bytes {
            victims.append(record)
            // The index shrinks by the record's row.
            total -= record.bytesOnDisk + IndexFileLayout.rowLength
        }
        return victims
    }

    /// Checks that the folders can be written, and that the file system is not read-only.
    private func checkWritable() throws(DiskURLCache.Error) {
        // Looking up "." in a folder needs the permission to search it.
        for path in [paths.directory, paths.records] where access(path + "/.", W_OK) != 0 {
            throw DiskURLCache.Error(.notWritable, path: path, errno: errno)
        }
        // The cache of that user would not trust files written by this process.
        if case .user(let user) = owner, user != geteuid() {
            throw DiskURLCache.Error(.otherOwner, path: paths.directory, userID: user)
        }
    }

    /// Builds a new index from the records. The times of last use in the old index are lost.
    /// - Returns: how many records the new index holds.
    /// - Throws: if a process that has the cache open owns the index, or if the directory cannot be written.
    public func rebuildIndex() throws(DiskURLCache.Error) -> Int {
        try checkWritable()
        let store = open()
        defer { store.close() }
        guard store.rebuildIndex() else { throw DiskURLCache.Error(.inUse, path: directory.path) }
        return store.entryCount
    }

    /// Opens the directory like one more process that uses it, with an unlimited capacity, so that nothing is evicted.
    private func open() -> DiskStore {
        DiskStore(configuration: DiskConfiguration(directory: directory.path, capacity: .max))
    }
}
