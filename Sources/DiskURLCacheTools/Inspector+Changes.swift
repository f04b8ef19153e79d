import DiskURLCache
import Foundation

extension DiskURLCache.Inspector {
    /// Removes records; a program that uses the cache no longer finds them. Two kinds of record stay: one that was
    /// replaced since it was listed, and one that cannot be removed. Works on the caller's thread.
    /// - Parameters:
    ///   - records: as `records(verifyingBodies:progress:)` listed them.
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
            if store.removeRecord(record.name, sequence: record.sequence) { removed += 1 }
        }
        progress(records.count, records.count)
        store.flush()
        return removed
    }

    /// Removes the least recently used records until the directory takes no more than so many bytes, and no more
    /// records than needed; pinned records last. With 0 all are removed: folders and index files stay, and take some
    /// bytes.
    /// - Returns: the number of records removed, and the bytes that the directory takes now.
    /// - Throws: when the directory cannot be read or written.
    public func trim(
        toBytes bytes: Int, progress: (_ done: Int, _ total: Int) -> Void = { _, _ in }
    ) throws(DiskURLCache.Error) -> (removed: Int, bytes: Int) {
        let store = open()
        defer { store.close() }
        store.flush()
        var removed = 0
        // Twice if the files that report the removals to other processes grew.
        for _ in 0..<3 {
            let victims = try leastRecentlyUsed(above: bytes)
            if victims.isEmpty { break }
            try checkWritable()
            removed += remove(victims, from: store, progress: progress)
        }
        let left = try records()
        if left.isEmpty { store.replaceEmptyFolder(bytes) }
        return (removed, left.reduce(overhead) { $0 + $1.allocated })
    }

    /// The records to remove so that the directory takes no more than so many bytes.
    private func leastRecentlyUsed(above bytes: Int) throws(DiskURLCache.Error) -> [Record] {
        let records = try records()
        var total = records.reduce(overhead) { $0 + $1.allocated }
        let leastRecentFirst = records.reversed().filter { $0.problem == nil }
        var victims: [Record] = []
        for record in leastRecentFirst.filter({ !$0.isPinned }) + leastRecentFirst.filter(\.isPinned)
        where total > bytes {
            victims.append(record)
            // The record's row in the index is removed as well.
            total -= record.allocated + IndexFileLayout.rowLength
        }
        return victims
    }

    /// Permission to write, and a file system that is not read-only.
    private func checkWritable() throws(DiskURLCache.Error) {
        // Looking up "." in a folder needs the permission to search it.
        for path in [paths.directory, paths.records] where access(path + "/.", W_OK) != 0 {
            throw DiskURLCache.Error(.notWritable, path: path, errno: errno)
        }
        // The owner's cache does not trust files that this process wrote.
        if case .user(let user) = owner, user != geteuid() {
            throw DiskURLCache.Error(.otherOwner, path: paths.directory, userID: user)
        }
    }

    /// Makes the index again from the records. The times of last use are lost with the old index.
    /// - Returns: how many records the new index holds.
    /// - Throws: when another process keeps the index, or the directory cannot be written.
    public func rebuildIndex() throws(DiskURLCache.Error) -> Int {
        try checkWritable()
        let store = open()
        defer { store.close() }
        guard store.rebuildIndex() else { throw DiskURLCache.Error(.inUse, path: directory.path) }
        return store.entryCount
    }

    /// As one more process on the directory, without a limit: it evicts nothing.
    private func open() -> DiskStore {
        DiskStore(configuration: DiskStore.Configuration(directory: directory.path, capacity: .max))
    }
}
