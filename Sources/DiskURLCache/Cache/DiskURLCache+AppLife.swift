import Foundation

// For an app that runs short of memory, goes to the background and comes back. On Apple platforms the cache observes
// the notifications itself (`AppLife+Darwin.swift`).

extension DiskURLCache {
    /// Empties the memory layer. Lookups still find responses that the app holds, for as long as it holds them. Called on
    /// memory warnings on platforms that have them. Can be called from any thread; returns at once.
    func relieveMemoryPressure() {
        if isBySystem { super.removeAllCachedResponses() }
        store.relieveMemory()
    }

    /// Writes all changes to disk and releases the folder's lock, so that no lock is held while the process is suspended:
    /// iOS kills an app that holds one in an App Group folder. Lookups and stores continue; index and eviction wait for
    /// ``resumeMaintenance()``, or for another process. Waits for file operations on the caller's thread, as ``flush()`` does.
    func suspendMaintenance() {
        flush()
        (store.disk as? DiskStore)?.suspend()
    }

    /// Undoes ``suspendMaintenance()``; without that call, it changes nothing.
    func resumeMaintenance() {
        (store.disk as? DiskStore)?.resume()
    }
}
