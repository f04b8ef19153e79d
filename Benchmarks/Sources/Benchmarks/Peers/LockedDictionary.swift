import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The floor of a memory hit: a dictionary by URL string under a lock. It knows no methods, no header fields, no
/// recency and no bound.
final class LockedDictionary: @unchecked Sendable {
    // @unchecked: `entries` is reached only while the lock is held.
    private var entries: [String: CachedURLResponse] = [:]
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

    init() {
        pthread_mutex_init(lock, nil)
    }

    deinit {
        pthread_mutex_destroy(lock)
        lock.deallocate()
    }

    subscript(request: URLRequest) -> CachedURLResponse? {
        get {
            guard let key = request.url?.absoluteString else { return nil }
            pthread_mutex_lock(lock)
            defer { pthread_mutex_unlock(lock) }
            return entries[key]
        }
        set {
            guard let key = request.url?.absoluteString else { return }
            pthread_mutex_lock(lock)
            defer { pthread_mutex_unlock(lock) }
            entries[key] = newValue
        }
    }
}
