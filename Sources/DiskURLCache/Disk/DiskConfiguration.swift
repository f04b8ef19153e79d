import Foundation

package struct DiskConfiguration: Sendable {
    /// Absolute path; made (0700) when missing.
    var directory: String
    /// Bytes that the directory may take on disk, everything counted in allocated blocks. 0 stores nothing. No larger
    /// record is read.
    var capacity: Int
    /// Eviction starts above `capacity` and ends at this fraction of it.
    var lowWaterFraction = 0.9
    /// The largest storable entry, as a fraction of `capacity`.
    var maximumEntryFraction = 0.5
    /// Pinned entries are evicted last as long as they take no more than this fraction of `capacity`.
    var pinnedFraction = 0.25
    /// Whether records hold the response's URL in clear.
    var keepsURLs = true
    /// Entries stored longer ago (in seconds) are misses and go.
    var maximumStorageAge: TimeInterval?
    /// Entries not used for longer (in seconds) are misses and go.
    var maximumAccessAge: TimeInterval?
    /// Only reads: a pre-filled or bundled directory. Nothing in it is ever changed.
    var isReadOnly = false
    /// The user whose files are believed.
    var owner: FileOwner { isReadOnly ? .processOrRoot : .process }
    /// Called when the directory was opened, or is another one, with the folders that hold files. On the maintenance
    /// queue.
    var prepareFolders: (@Sendable ([String]) -> Void)?
    /// Where the system may suspend the process: asks for the time of a pass. Files are locked only within it.
    var passActivity: PassTime.Activity?
    /// Seconds between a change and the pass that follows: long enough to do a burst's work at once.
    var maintenanceDelay = 0.02
    /// Seconds between two savings of an index that changes: what a crash may cost of the times of use.
    var savingInterval = 60.0

    package init(directory: String, capacity: Int) {
        self.directory = directory
        self.capacity = capacity
    }

    var hasAges: Bool { maximumStorageAge != nil || maximumAccessAge != nil }

    /// Whether a record exceeds an age by its row, a second at least: rows know whole seconds.
    func isExpired(_ row: IndexRow, now: Double) -> Bool {
        let isTooOld = !row.isPartial && maximumStorageAge.map { now - Double(row.storedAt) > $0 + 1 } ?? false
        return isTooOld || maximumAccessAge.map { now - Double(row.accessedAt) > $0 + 1 } ?? false
    }
}

extension Int {
    /// A part of a number of bytes, without overflow.
    func share(_ fraction: Double) -> Int {
        let product = Double(self) * fraction
        return product >= Double(Int.max) ? self : Swift.min(self, Int(product))
    }
}
