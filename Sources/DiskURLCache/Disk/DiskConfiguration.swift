import Foundation

package struct DiskConfiguration: Sendable {
    /// The absolute path. The directory is made (mode 0700) if it does not exist.
    var directory: String
    /// A folder above `directory` that lies in one where all users may make folders. Another user may have made it, or
    /// a link in its place, and could take the directory away and bring it back: then nothing is used. Nil for a
    /// directory that somebody has named, who answers for what is above it.
    var enclosure: String?
    /// The bytes that the directory may take on disk, everything counted in whole blocks. With 0 nothing is stored. A
    /// record that is larger is not read.
    var capacity: Int
    /// Eviction begins above `capacity`, and ends at this fraction of it.
    var lowWaterFraction = 0.9
    /// The largest storable entry, as a fraction of `capacity`.
    var maximumEntryFraction = 0.5
    /// Pinned entries are evicted last as long as they take no more than this fraction of `capacity`.
    var pinnedFraction = 0.25
    /// Whether eviction weighs the time since the last use by size: see `EvictionPolicy`.
    var weighsSize = false
    /// Whether records hold the response's URL in clear.
    var keepsURLs = true
    /// Entries that were stored more than this many seconds ago are misses and are removed.
    var maximumStorageAge: TimeInterval?
    /// Entries that were not used for this many seconds are misses and are removed.
    var maximumAccessAge: TimeInterval?
    /// Whether the directory is only read, as one that ships with the app. Nothing in it is ever changed.
    var isReadOnly = false
    /// The user whose files are trusted.
    var owner: FileOwner { isReadOnly ? .processOrRoot : .process }
    /// Called on the maintenance queue after the directory was opened, also if the path leads to a different one, with
    /// the folders that contain files.
    var prepareFolders: (@Sendable ([String]) -> Void)?
    /// Whether the system may refuse files until the device is unlocked.
    var hasFileProtection = false
    /// Asks for the time of a pass, on systems that suspend processes. Files are locked only within that time. Nil
    /// elsewhere.
    var passActivity: PassTime.Activity?
    /// The seconds between a change and the pass that follows it: long enough to handle a burst of changes together. A
    /// store that leaves nothing to do waits for `idleInterval`, too.
    var maintenanceDelay = 0.02
    /// The least seconds between two passes that follow changes, while nothing has to be evicted or examined.
    var idleInterval = 1.0
    /// The seconds between two savings of a changing index. A crash loses the times of use since the last saving. An
    /// owner makes a pass so often also if nothing happens in it.
    var savingInterval = 60.0

    package init(directory: String, capacity: Int) {
        self.directory = directory
        self.capacity = capacity
    }

    var hasAges: Bool { maximumStorageAge != nil || maximumAccessAge != nil }

    /// When a record exceeds a maximum age according to its row, in seconds since 1970. Rows know whole seconds, so it
    /// must exceed it by a second.
    func expiry(of row: IndexRow) -> Double {
        var time = Double.infinity
        if let age = maximumStorageAge, !row.isPartial { time = Double(row.storedAt) + age + 1 }
        if let age = maximumAccessAge { time = min(time, Double(row.accessedAt) + age + 1) }
        return time
    }
}

extension Int {
    /// A fraction of a number of bytes, without overflow.
    func share(_ fraction: Double) -> Int {
        let product = Double(self) * fraction
        return product >= Double(Int.max) ? self : Swift.min(self, Int(product))
    }
}
