import Foundation

// Makes the layers that a configuration describes.

extension DiskURLCache.Configuration {
    /// - Parameters:
    ///   - directory: the directory of the built-in disk layer; nil without one.
    ///   - storage: the app's storage; nil without one.
    func makeStore(
        directory: URL? = nil, storage: StorageMaker? = nil, maintenance: MaintenanceQueue = MaintenanceQueue()
    ) -> TieredStore {
        let hub = EventHub(log: log ?? SystemLog.warn)
        let share = maximumEntryFraction
        var disk = storage?.layer(keepsURLs)
        if let directory {
            var settings = DiskConfiguration(directory: directory.path, capacity: diskCapacity)
            settings.enclosure = Self.enclosure(of: directory)
            settings.maximumEntryFraction = share
            settings.pinnedFraction = min(max(0, pinnedFraction), 1)
            settings.lowWaterFraction = min(max(0, evictsTo), 1)
            settings.weighsSize = evictionWeighsSize
            settings.keepsURLs = keepsURLs
            settings.maximumAccessAge = maximumTimeUnused?.seconds
            settings.maximumStorageAge = maximumTimeStored?.seconds
            settings.hasFileProtection = platform.locksOnlyInPasses
            if platform.locksOnlyInPasses, !Self.isInOwnContainer(directory, home: container) {
                settings.passActivity = passActivity
            }
            if let preparation = FolderPreparation.current {
                let protection = fileProtection
                settings.prepareFolders = { preparation($0, protection: protection) }
            }
            disk = DiskStore(
                configuration: settings, fileSystem: fileSystem, clock: clock,
                maintenance: maintenance
            ) { hub.report($0) }
        }
        let fallbacks = fallbackDirectories.filter(\.isFileURL).map { directory in
            // The folder is never written, so the capacity only limits the largest record that is read.
            var settings = DiskConfiguration(directory: directory.path, capacity: Int(Int32.max))
            settings.isReadOnly = true
            return DiskStore(configuration: settings, clock: clock) { hub.report($0) }
        }
        return TieredStore(
            memory: MemoryCache(costLimit: memoryCapacity, countLimit: memoryCountLimit ?? .max),
            maximumEntryFraction: share, disk: disk,
            maintenance: maintenance, fallbacks: fallbacks, hub: hub, clock: clock)
    }

    /// Whether a folder is in the container of this app alone. There a process may be suspended with a lock on a file;
    /// in a container that apps share, the system kills it for that.
    /// - Parameter home: the app's container, on platforms that have such.
    static func isInOwnContainer(_ directory: URL, home: String) -> Bool {
        // One of the paths may go through a link, such as /var.
        let path = directory.withoutLinks.pathComponents
        let container = URL(fileURLWithPath: home).withoutLinks.pathComponents
        return path.starts(with: container) && path.count > container.count
    }
}
