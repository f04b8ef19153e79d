import Foundation

/// The files in the folder of records, from which the index is made: `DiskIndex.fill`.
struct FolderListing: Sendable {
    private(set) var records: [(name: RecordName, status: FileStatus)] = []

    /// Lists the folder with the status of each file. Only regular files of the owner with a single name count as
    /// records.
    /// - Parameter expectedCount: for how many files room is made at once, instead of moving them as the list grows.
    init(
        _ files: any FileSystem, _ paths: DiskPaths, owner: FileOwner, expectedCount: Int = 0
    ) throws(Errno) {
        var records: [(name: RecordName, status: FileStatus)] = []
        records.reserveCapacity(expectedCount)
        try files.listWithStatus(paths.records) { name, status in
            guard let name = RecordName(name), let status = status(), owner.isTrustedFile(status) else { return }
            records.append((name, status))
        }
        self.records = records
    }

    /// The size of the records on disk, in bytes.
    var bytes: Int { records.reduce(0) { $0 + $1.status.spaceTaken } }
}
