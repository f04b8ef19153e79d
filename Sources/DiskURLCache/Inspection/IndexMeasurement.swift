import Foundation

/// Times the index alone, which no public call does: for the benchmarks of this repository.
@_spi(Measuring) public final class IndexMeasurement {
    private var storage: IndexStorage
    private let index: DiskIndex

    /// An index of that many entries, in an existing directory that is no cache.
    public init(entries: Int, directory: URL) {
        var index = DiskIndex()
        index.prepare(for: entries)
        for number in 0..<entries {
            let digest = SHA256Digest.digest(of: "\(number)")
            index.insert(IndexRow(digest: digest, slot: 0, allocated: 4096, accessedAt: 0))
        }
        self.index = index
        storage = IndexStorage(SystemFiles(), DiskPaths(directory: directory.path))
    }

    /// Writes the index as a whole; false when that failed.
    public func save() -> Bool {
        (try? storage.save(index)) != nil
    }

    /// Reads what `save` wrote; the number of its entries.
    public func load() -> Int {
        if case .loaded(let index) = storage.load() { index.count } else { 0 }
    }
}
