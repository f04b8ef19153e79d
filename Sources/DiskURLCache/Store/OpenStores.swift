import Foundation

/// The open stores of this process by their directories: two caches with the same directory share a store.
enum OpenStores {
    private struct Reference {
        weak var store: TieredStore?
        /// The settings of the cache that opened the directory first, by name.
        let settings: [String: String]
    }

    /// Held while a store is made, so that two caches that are opened at the same time share it. The keys are the bytes
    /// of the paths: for Swift two spellings of é are equal, for the system they are two folders.
    private static let stores = Mutex<[[UInt8]: Reference]>([:])

    /// The open store of a directory, or a new one.
    /// - Returns: the store, and the names of the settings that differ from those of the open store.
    static func open(
        _ directory: URL, settings: [String: String], make: () -> TieredStore
    ) -> (store: TieredStore, differing: [String]) {
        let path = Array(directory.withoutLinks.path.utf8)
        // References are kept until the lock is released: dropping the last one closes the store, which does file
        // operations.
        var seen: [TieredStore?] = []
        let result = stores.withLock { stores -> (store: TieredStore, differing: [String]) in
            if let reference = stores[path], let store = reference.store {
                return (store, settings.filter { reference.settings[$0.key] != $0.value }.keys.sorted())
            }
            seen = stores.values.map(\.store)
            stores = stores.filter { $0.value.store != nil }
            let store = make()
            stores[path] = Reference(store: store, settings: settings)
            return (store, [])
        }
        withExtendedLifetime(seen) {}
        return result
    }
}
