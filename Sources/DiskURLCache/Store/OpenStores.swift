import Foundation

/// The stores of this process, by the directory of each: two caches on one directory are one store.
enum OpenStores {
    private struct Reference {
        weak var store: TieredStore?
        /// By name, as the first cache of the directory wanted them.
        let settings: [String: String]
    }

    /// Held while a store is made, so that two caches opened at once share it.
    /// By the bytes of the path: to Swift two spellings of é are one text, to the system they are two folders.
    private static let stores = Mutex<[[UInt8]: Reference]>([:])

    /// The store of a directory: the one that is open, or a new one.
    /// - Returns: with the names of those settings that the open store has otherwise.
    static func open(
        _ directory: URL, settings: [String: String], make: () -> TieredStore
    ) -> (store: TieredStore, differing: [String]) {
        let path = Array(directory.resolvingSymlinksInPath().standardizedFileURL.path.utf8)
        // Stores that are looked at are let go outside the lock: who lets go last closes the store, which writes files.
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
