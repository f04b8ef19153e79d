import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The least that a memory hit can cost: a dictionary by URL string, under a lock. It has no methods, header fields,
/// order of use or limit.
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
