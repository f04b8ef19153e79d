import Foundation

/// The files in the folder of records, and the index that is made from them.
struct FolderListing: Sendable {
    private(set) var records: [(name: RecordName, status: FileStatus)] = []

    /// Lists the folder with the status of each file. Only regular files of the owner with a single name count as
    /// records.
    init(_ files: any FileSystem, _ paths: DiskPaths, owner: FileOwner) throws(Errno) {
        var records: [(name: RecordName, status: FileStatus)] = []
        try files.listWithStatus(paths.records) { name, status in
            guard let name = RecordName(name), let status = status(), owner.isTrustedFile(status) else { return }
            records.append((name, status))
        }
        self.records = records
    }

    /// The size of the records on disk, in bytes.
    var bytes: Int { records.reduce(0) { $0 + $1.status.allocated } }
}

extension DiskIndex {
    /// Makes the index agree with the folder: every file gets a row, and rows without a file are dropped. A saved row
    /// counts only if the file has the size and the time of writing in the row, and was written before the rows were
    /// saved. All other rows are partial: a changed file keeps the position of its row, an unknown one gets a position
    /// by its time of writing.
    ///
    /// - Parameters:
    ///   - saved: in the order of use, the least recent first.
    ///   - savedAt: when they were saved, in nanoseconds since 1970.
    /// - Returns: the names of the rows that are partial now.
    mutating func fill(
        with saved: [IndexRow], savedAt: Int, listing: FolderListing
    ) -> [RecordName] {
        prepare(for: listing.records.count)
        var statuses: [RecordName: FileStatus] = [:]
        statuses.reserveCapacity(listing.records.count)
        for record in listing.records { statuses[record.name] = record.status }
        var partial: [RecordName] = []
        for row in saved {
            guard let status = statuses.removeValue(forKey: row.name) else { continue }
            if row.isAbout(status), status.modified < savedAt {
                put(row, usedAt: row.lastUse)
            } else {
                var changed = IndexRow(row.name, status)
                changed.accessedAt = row.accessedAt
                put(changed, usedAt: row.lastUse)
                partial.append(row.name)
            }
        }
        let unknown = statuses.sorted { $0.value.modified < $1.value.modified }.map { IndexRow($0.key, $0.value) }
        putUnknown(unknown)
        return partial + unknown.map(\.name)
    }
}
