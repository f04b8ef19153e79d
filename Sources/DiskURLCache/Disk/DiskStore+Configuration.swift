import Foundation

extension DiskStore {
    struct Configuration: Sendable {
        /// Absolute path; made (0700) when missing.
        var directory: String
        /// Bytes that the directory may take on disk, everything counted in allocated blocks. 0 stores nothing.
        var capacity: Int
        /// Eviction starts above `capacity` and ends at this fraction of it.
        var lowWaterFraction = 0.9
        /// The largest storable entry, as a fraction of `capacity`.
        var maximumEntryShare = 0.5
        /// Pinned entries are evicted last as long as they take no more than this fraction of `capacity`.
        var pinnedShare = 0.25
        /// Bytes that may wait to be written. A caller who stores more waits, at most `backlogTimeout`.
        var pendingByteLimit = 32 << 20
        /// Seconds after which a waiting store is given up.
        var backlogTimeout = 2.0
        /// Whether records hold the response's URL in clear.
        var keepsURLs = true
        /// Entries stored longer ago (in seconds) are misses and go.
        var maximumStorageAge: TimeInterval?
        /// Entries not used for longer (in seconds) are misses and go.
        var maximumAccessAge: TimeInterval?
        /// Only reads: a pre-filled or bundled directory. Nothing in it is ever changed.
        var isReadOnly = false
        /// Seconds between a store and its writing: long enough to write a burst as one batch.
        var maintenanceDelay = 0.02
        /// Seconds after which access times are saved.
        var accessTimeDelay = 5.0

        init(directory: String, capacity: Int) {
            self.directory = directory
            self.capacity = capacity
        }
    }
}
