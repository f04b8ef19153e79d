import Foundation

// What an app's life asks of a cache. On Apple platforms the notifications are observed by the cache itself
// (`AppLife+Darwin.swift`); a program elsewhere calls these where it fits.

extension DiskURLCache {
    /// Gives memory back: the memory layer is emptied, but responses that the app still holds can be found as long as
    /// it does (seeds: MKNetworkKit, AUCCache). Called on memory warnings where the platform has them.
    public func relieveMemoryPressure() {
        store.relieveMemory()
    }

    /// Writes everything down and gives up the folder's lock, so that no lock is held while the process is suspended:
    /// iOS ends an app that holds one in an App Group folder. Lookups and stores go on; index and eviction wait for
    /// ``resumeMaintenance()``, or for another process.
    public func suspendMaintenance() {
        flush()
        (store.disk as? DiskStore)?.releaseLock()
    }

    /// Undoes ``suspendMaintenance()``.
    public func resumeMaintenance() {
        (store.disk as? DiskStore)?.reacquireLock()
    }
}
