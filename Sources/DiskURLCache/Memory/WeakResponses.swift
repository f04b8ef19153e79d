import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Responses that memory gave up under pressure and that the app still holds: lookups find them as long as the app holds them.
final class WeakResponses: Sendable {
    private struct Reference {
        let metadata: EntryMetadata
        weak var response: CachedURLResponse?
    }

    private let references = Mutex<[RequestKey: Reference]>([:])

    var count: Int { references.withLock { $0.count } }

    func add(_ response: CachedURLResponse, _ metadata: EntryMetadata, for key: RequestKey) {
        references.withLock { $0[key] = Reference(metadata: metadata, response: response) }
    }

    func entry(for key: RequestKey) -> StoredEntry? {
        references.withLock { references in
            guard let reference = references[key] else { return nil }
            guard let response = reference.response else {
                references[key] = nil
                return nil
            }
            return StoredEntry(metadata: reference.metadata, body: response.data, presented: response)
        }
    }

    func remove(_ key: RequestKey) {
        references.withLock { if !$0.isEmpty { $0[key] = nil } }
    }

    /// Forgets the responses that the app has released, which are most of those that memory gave up.
    func removeReleased() {
        references.withLock { references in references = references.filter { $0.value.response != nil } }
    }

    func removeAll() {
        references.withLock { $0.removeAll() }
    }
}
