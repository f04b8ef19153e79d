import Foundation

// The layers that a configuration describes.

extension DiskURLCache.Configuration {
    /// - Parameters:
    ///   - directory: of the built-in disk layer, if there is one.
    ///   - storage: the app's storage, if there is one.
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
            // Of a folder that is never written, the capacity bounds only the largest record that is read.
            var settings = DiskStore.Configuration(directory: directory.path, capacity: Int(Int32.max))
            settings.isReadOnly = true
            return DiskStore(configuration: settings, clock: clock) { hub.report($0) }
        }
        return TieredStore(
            memory: MemoryCache(costLimit: memoryCapacity), maximumEntryFraction: share, disk: disk,
            maintenance: maintenance, fallbacks: fallbacks, hub: hub)
    }
}
