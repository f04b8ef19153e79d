import Foundation

// Makes the layers that a configuration describes.

extension DiskURLCache.Configuration {
    /// - Parameters:
    ///   - directory: the directory of the built-in disk layer; nil without one.
    ///   - storage: the app's storage; nil without one.
    func makeStore(directory: URL? = nil, storage: (any StorageMaker)? = nil) -> TieredStore {
        let hub = EventHub()
        let maintenance = MaintenanceQueue()
        let share = maximumEntryFraction
        var disk = storage?.layer(keepsURLs: keepsURLs)
        if let directory {
            var settings = DiskStore.Configuration(directory: directory.path, capacity: diskCapacity)
            settings.maximumEntryFraction = share
            settings.pinnedFraction = min(max(0, pinnedFraction), 1)
            settings.keepsURLs = keepsURLs
            settings.maximumAccessAge = maximumAgeSinceAccess
            settings.maximumStorageAge = maximumAgeSinceStorage
            if platform.locksOnlyInPasses { settings.passActivity = passActivity }
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
            var settings = DiskStore.Configuration(directory: directory.path, capacity: Int(Int32.max))
            settings.isReadOnly = true
            return DiskStore(configuration: settings, clock: clock) { hub.report($0) }
        }
        return TieredStore(
            memory: MemoryCache(costLimit: memoryCapacity), maximumEntryFraction: share, disk: disk,
            maintenance: maintenance, fallbacks: fallbacks, hub: hub)
    }
}
