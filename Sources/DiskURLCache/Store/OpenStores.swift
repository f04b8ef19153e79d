import Foundation

/// The stores of this process, by the directory of each: two caches on one directory are one store.
enum OpenStores {
    private struct Reference {
        weak var store: TieredStore?
        /// By name, as the first cache of the directory wanted them.
        let settings: [String: String]
    }

    /// Held while a store is made, so that two caches opened at once share it.
    private static let stores = Mutex<[String: Reference]>([:])

    /// The store of a directory: the one that is open, or a new one.
    /// - Returns: with the names of those settings that the open store has otherwise.
    static func open(
        _ directory: URL, settings: [String: String], make: () -> TieredStore
    ) -> (store: TieredStore, differing: [String]) {
        let path = directory.resolvingSymlinksInPath().standardizedFileURL.path
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
