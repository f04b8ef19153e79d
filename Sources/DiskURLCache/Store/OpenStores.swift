import Foundation

/// The stores of this process, by the directory of each: two caches on one directory are one store.
enum OpenStores {
    private struct Reference {
        weak var store: TieredStore?
    }

    /// Held while a store is made, so that two caches opened at once share it.
    private static let stores = Mutex<[String: Reference]>([:])

    /// The store of a directory: the one that is open, or a new one. True where it was open.
    static func open(_ directory: URL, make: () -> TieredStore) -> (store: TieredStore, wasOpen: Bool) {
        let path = directory.resolvingSymlinksInPath().standardizedFileURL.path
        // Stores that are looked at are let go outside the lock: who lets go last closes the store, which writes files.
        var seen: [TieredStore?] = []
        let result = stores.withLock { stores -> (store: TieredStore, wasOpen: Bool) in
            if let store = stores[path]?.store { return (store, true) }
            seen = stores.values.map(\.store)
            stores = stores.filter { $0.value.store != nil }
            let store = make()
            stores[path] = Reference(store: store)
            return (store, false)
        }
        withExtendedLifetime(seen) {}
        return result
    }
}
