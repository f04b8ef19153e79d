import Dispatch

/// Entries that are stored and not on disk yet, in the order in which they will be written: that of the calls.
///
/// Lookups see an entry here from when it is inserted until the disk has it, or its key was removed. A removal first cancels
/// the entries here, then erases the disk, and only then drops the cancelled entries: so no lookup in between finds an older
/// version on disk. The buffer is bounded: a caller that inserts faster than the disk writes waits for room.
final class WriteBuffer: Sendable {
    struct Write: Sendable {
        let key: RequestKey
        let entry: StoredEntry
        /// Tells the write apart from one that took its place.
        let number: UInt64
        /// When the entry was stored or last looked up: its place in the order of use, in nanoseconds of the monotonic clock.
        fileprivate(set) var usedAt: UInt64
        /// Memory does not have the entry, so its bytes count against the memory limit here.
        fileprivate var isAlone = false
        /// A removal is under way: lookups still see the entry, and nobody writes it.
        fileprivate var isCancelled = false

        /// The bytes that the entry counts for: its body, and an estimate of its metadata.
        var weight: Int { entry.body.count + 1_024 }
    }

    enum Insertion {
        /// Whether it is time to begin writing, and whether to hurry.
        case inserted(isFirst: Bool, isPressing: Bool)
        case full
    }

    /// Guarded by the lock around it.
    private struct State {
        var writes: [RequestKey: [Write]] = [:]
        /// In the order of the calls. A number whose write was cancelled or replaced is skipped.
        var queue: [(key: RequestKey, number: UInt64)] = []
        var queueStart = 0
        var lastNumber: UInt64 = 0
        var bytes = 0
        var aloneBytes = 0
        var waiters = 0

        mutating func remove(_ key: RequestKey, where isRemoved: (Write) -> Bool) {
            guard let index = writes.index(forKey: key) else { return }
            for write in writes.values[index] where isRemoved(write) {
                bytes -= write.weight
                if write.isAlone { aloneBytes -= write.weight }
            }
            writes.values[index].removeAll(where: isRemoved)
            if writes.values[index].isEmpty { writes.remove(at: index) }
        }
    }

    private let byteLimit: Int
    private let state = Mutex(State(), isContended: true)
    /// Signalled once for each waiter when entries were written.
    private let room = DispatchSemaphore(value: 0)

    /// - Parameter byteLimit: of all buffered entries. A single entry above the limit is taken when the buffer is empty.
    init(byteLimit: Int) {
        self.byteLimit = byteLimit
    }

    var isEmpty: Bool { state.withLock { $0.writes.isEmpty } }
    var bytes: Int { state.withLock { $0.bytes } }
    /// Bytes of the entries that memory does not have.
    var aloneBytes: Int { state.withLock { $0.aloneBytes } }
    var count: Int { state.withLock { $0.writes.values.reduce(0) { $0 + $1.count } } }
    /// Callers that wait for room.
    var waiterCount: Int { state.withLock { $0.waiters } }

    func contains(_ key: RequestKey) -> Bool { state.withLock { $0.writes[key] != nil } }

    /// The buffered entries of a key, the most recent first. Counts as their use.
    func entries(of key: RequestKey) -> [StoredEntry] {
        state.withLock { state in
            // As nearly always: nothing is built.
            guard !state.writes.isEmpty, let index = state.writes.index(forKey: key) else { return [] }
            let now = MonotonicTime.nanoseconds
            for position in state.writes.values[index].indices { state.writes.values[index][position].usedAt = now }
            return state.writes.values[index].reversed().map(\.entry)
        }
    }

    /// Adds an entry in place of that of its key and variant.
    /// - Parameter share: the share of the limit that may be filled.
    func insert(
        _ entry: StoredEntry, for key: RequestKey, isInMemory: Bool, share: Double
    ) -> Insertion {
        state.withLock { state in
            var write = Write(
                key: key, entry: entry, number: state.lastNumber + 1,
                usedAt: MonotonicTime.nanoseconds)
            write.isAlone = !isInMemory
            guard state.bytes + write.weight <= Int(Double(byteLimit) * share) || state.writes.isEmpty else {
                state.waiters += 1
                return .full
            }
            let isFirst = state.writes.isEmpty
            state.remove(key) { $0.entry.metadata.varyKey == entry.metadata.varyKey }
            state.lastNumber += 1
            state.writes[key, default: []].append(write)
            state.queue.append((key, write.number))
            state.bytes += write.weight
            if write.isAlone { state.aloneBytes += write.weight }
            return .inserted(isFirst: isFirst, isPressing: state.bytes > byteLimit / 4)
        }
    }

    /// After `.full`: waits until an entry was written. False when the time is over.
    func waitForRoom(until time: DispatchTime) -> Bool {
        let isSignalled = room.wait(timeout: time) == .success
        state.withLock { $0.waiters -= 1 }
        return isSignalled
    }

    /// After `.full`, for a caller that does not wait.
    func stopWaiting() {
        state.withLock { $0.waiters -= 1 }
    }

    /// Replaces an entry that is still to be written by one with another head. False where it is not here.
    func replace(_ sequence: UInt64, of key: RequestKey, by entry: StoredEntry) -> Bool {
        state.withLock { state in
            guard let index = state.writes.index(forKey: key),
                let position = state.writes.values[index].firstIndex(where: {
                    $0.entry.metadata.sequence == sequence && !$0.isCancelled
                })
            else { return false }
            let old = state.writes.values[index][position]
            state.lastNumber += 1
            var write = Write(
                key: key, entry: entry, number: state.lastNumber,
                usedAt: MonotonicTime.nanoseconds)
            write.isAlone = old.isAlone
            state.writes.values[index][position] = write
            state.queue.append((key, write.number))
            return true
        }
    }

    // MARK: Writing

    /// The write whose turn it is. It stays here until `finish`, so that lookups see it.
    func next() -> Write? {
        state.withLock { state in
            while state.queueStart < state.queue.count {
                let (key, number) = state.queue[state.queueStart]
                state.queueStart += 1
                // The part that was read is dropped now and then, so that a queue that never runs empty does not grow.
                if state.queueStart > 1_024, state.queueStart * 2 > state.queue.count {
                    state.queue.removeFirst(state.queueStart)
                    state.queueStart = 0
                }
                if let write = state.writes[key]?.first(where: { $0.number == number && !$0.isCancelled }) {
                    return write
                }
            }
            state.queue.removeAll(keepingCapacity: state.queue.capacity < 4_096)
            state.queueStart = 0
            return nil
        }
    }

    /// The write as it is now, with its last use; nil where it was cancelled or replaced.
    func current(_ write: Write) -> Write? {
        state.withLock { $0.writes[write.key]?.first { $0.number == write.number && !$0.isCancelled } }
    }

    /// The entry was written, or is dropped.
    func finish(_ write: Write) {
        let waiters = state.withLock { state in
            state.remove(write.key) { $0.number == write.number }
            return state.waiters
        }
        for _ in 0..<waiters { room.signal() }
    }

    /// Memory evicted the entries of a key.
    func noteAlone(_ key: RequestKey) -> Bool {
        state.withLock { state in
            guard let index = state.writes.index(forKey: key) else { return false }
            for position in state.writes.values[index].indices where !state.writes.values[index][position].isAlone {
                state.writes.values[index][position].isAlone = true
                state.aloneBytes += state.writes.values[index][position].weight
            }
            return true
        }
    }

    // MARK: Removal

    /// Cancels the writes of a key: they are not written any more, and lookups see them until `drop`.
    func cancel(_ key: RequestKey, where isRemoved: (StoredEntry) -> Bool = { _ in true }) -> [Write] {
        state.withLock { state in
            guard let index = state.writes.index(forKey: key) else { return [] }
            var cancelled: [Write] = []
            for position in state.writes.values[index].indices
            where isRemoved(state.writes.values[index][position].entry) {
                state.writes.values[index][position].isCancelled = true
                cancelled.append(state.writes.values[index][position])
            }
            return cancelled
        }
    }

    /// Cancels the writes of all keys.
    func cancelAll(where isRemoved: (RequestKey, StoredEntry) -> Bool = { _, _ in true }) -> [Write] {
        let keys = state.withLock { Array($0.writes.keys) }
        return keys.flatMap { key in cancel(key) { isRemoved(key, $0) } }
    }

    func drop(_ cancelled: [Write]) {
        for write in cancelled { finish(write) }
    }
}
