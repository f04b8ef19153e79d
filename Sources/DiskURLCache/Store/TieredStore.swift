import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Memory over a write buffer over the disk: the one place where an entry is looked up, stored and removed.
///
/// Each change goes to all layers under a lock of its key, so that they see changes of one key in the same order. Lookups
/// need no such lock: they may bring what they read from disk into memory unless memory saw a change of the key meanwhile.
/// So the buffer and the disk are changed first: a read of what was there before is voided by the change of memory after it.
final class TieredStore: Sendable {
    struct Configuration: Sendable {
        var memoryCapacity: Int
        var memoryCountLimit: Int
        /// The largest entry of memory as a share of its capacity.
        var maximumEntryFraction: Double
        /// Bytes that may wait to be written.
        var writeBufferLimit: Int
    }

    let memory: MemoryCache<RequestKey, MemoryRecord>
    let buffer: WriteBuffer
    /// The layer under memory: the built-in one or an app's storage; nil when there is none.
    let disk: (any StorageLayer)?
    /// The same, where it is the built-in one: for what an app's storage does not have, such as an order of use.
    let diskStore: DiskStore?
    /// Read-only; asked in order when the disk has nothing.
    let fallbacks: [DiskStore]
    /// What memory gave up under pressure and the app still holds.
    let weakResponses = WeakResponses()
    let history = RemovalHistory()
    let sequence = EntrySequence()
    let hub: EventHub
    let maintenance: MaintenanceQueue
    let configuration: Configuration

    /// One stripe would do; sixteen keep changes of different keys apart. Taken before all other locks, and held across the
    /// file operations of a removal. The maintenance queue takes none: who holds one may wait for the queue.
    let stripes: [Mutex<Void>] = (0..<16).map { _ in Mutex((), isContended: true) }
    /// Held by the maintenance queue while it writes one buffered entry: a removal waits for that one.
    let writing = Mutex(())
    /// Up to when the disk knows of the uses that memory answered, in nanoseconds of the monotonic clock.
    let notedUses = Mutex<UInt64>(0)

    /// - Parameters:
    ///   - disk: with the queue on which it wants its passes, which become those of this store.
    ///   - storage: an app's, in place of the disk.
    init(
        configuration: Configuration, disk: DiskStore?, storage: (any StorageLayer)? = nil,
        maintenance: MaintenanceQueue,
        fallbacks: [DiskStore], hub: EventHub
    ) {
        self.configuration = configuration
        self.disk = storage ?? disk
        diskStore = storage == nil ? disk : nil
        self.fallbacks = fallbacks
        self.hub = hub
        self.maintenance = maintenance
        let buffer = WriteBuffer(byteLimit: configuration.writeBufferLimit)
        self.buffer = buffer
        memory = MemoryCache(costLimit: configuration.memoryCapacity, countLimit: configuration.memoryCountLimit) {
            _ = buffer.noteAlone($0)
        }
        maintenance.setWork { [weak self] in self?.pass(isFlush: false) }
        self.disk?.observeChanges { [weak self] in self?.apply($0) }
        if self.disk != nil { maintenance.schedule(after: 0) }
    }

    deinit { close() }

    // MARK: Lookup

    /// What is stored of a key. `HEAD` is answered from what is stored for `GET`, or else from what was stored for `HEAD`.
    func lookup(_ key: RequestKey) -> Lookup {
        guard key.isForHead else { return lookup(stored: key) }
        let (get, head) = (lookup(stored: key), lookup(stored: key.storedForHead))
        if let first = get.known, let second = head.known { return Lookup(known: first + second) }
        return Lookup(key, below: self)
    }

    private func lookup(stored key: RequestKey) -> Lookup {
        let now = MonotonicTime.nanoseconds
        lookIfDue(at: now)
        let record = memory.use(key, at: now) { $0.isComplete || self.hasOnlyMemory ? $0 : nil }
        if let record {
            return Lookup(known: record.isAtHand ? record.variants : record.variants.map { loading($0, of: key) })
        }
        if let entry = weakResponses.entry(for: key) { return Lookup(known: [StoredVariant(entry, from: .memory)]) }
        let buffered = buffer.entries(of: key)
        // An entry without `Vary` answers every request: nothing older could win over it.
        if let first = buffered.first, first.answersEveryRequest {
            return Lookup(known: buffered.map { StoredVariant($0, from: .memory) })
        }
        if buffered.isEmpty, fallbacks.isEmpty, disk?.mayContain(key) != true, !memory.contains(key) {
            return Lookup(known: [])
        }
        return Lookup(key, below: self)
    }

    var hasOnlyMemory: Bool { disk == nil && fallbacks.isEmpty }

    /// Asks every layer, and lets memory know all variants of the key from then on.
    func read(_ key: RequestKey) -> [StoredVariant] {
        key.isForHead ? read(stored: key) + read(stored: key.storedForHead) : read(stored: key)
    }

    private func read(stored key: RequestKey) -> [StoredVariant] {
        let ticket = largestMemoryEntry > 0 ? memory.beginRead(key) : nil
        // Above first: what moves down meanwhile is seen in the one place or the other.
        var variants = memory.value(for: key)?.variants ?? []
        variants += buffer.entries(of: key).map { StoredVariant($0, from: .memory) }
        variants += disk?.variants(of: key) ?? []
        if variants.isEmpty {
            variants =
                fallbacks.lazy.map { $0.variants(of: key) }.first { !$0.isEmpty }?.map { $0.from(.fallback) } ?? []
        }
        variants = Self.oneOfEach(variants)
        if let ticket {
            let kept = MemoryRecord(variants.map { $0.entry == nil ? $0 : $0.from(.memory) }, isComplete: true)
            // Where a body at hand is too large for memory, the next lookup asks again.
            let isKept = !variants.isEmpty && kept.cost <= largestMemoryEntry
            memory.endRead(key, ticket: ticket, promoting: isKept ? (kept, kept.cost) : nil)
        }
        return variants.map { loading($0, of: key) }
    }

    /// Of several versions of one variant the most recent; the most recent variant first.
    private static func oneOfEach(_ variants: [StoredVariant]) -> [StoredVariant] {
        guard variants.count > 1 else { return variants }
        var kept: [StoredVariant] = []
        // Sorted so that of one version, which two layers have, the one at hand comes first.
        let sorted = variants.enumerated().sorted {
            ($0.element.metadata.sequence, $1.offset) > ($1.element.metadata.sequence, $0.offset)
        }
        for (_, variant) in sorted where !kept.contains(where: { $0.metadata.varyKey == variant.metadata.varyKey }) {
            kept.append(variant)
        }
        return kept
    }

    /// The variant, and when its body is read memory keeps it.
    private func loading(_ variant: StoredVariant, of key: RequestKey) -> StoredVariant {
        guard variant.entry == nil, largestMemoryEntry > 0 else { return variant }
        // What memory keeps is read whole.
        let isKept = variant.bodyLength + StoredEntry.headCost(variant.metadata) <= largestMemoryEntry
        return StoredVariant(
            variant.metadata, bodyLength: variant.bodyLength, from: variant.layer, open: isKept ? nil : variant.open
        ) { [self] in
            let entry = variant.load()
            let sequence = variant.metadata.sequence
            if let entry, entry.memoryCost > largestMemoryEntry { return entry }
            memory.update(key) { record in
                // Only what memory still lists: the key may have changed meanwhile.
                guard var record, record.variants.contains(where: { $0.metadata.sequence == sequence }) else {
                    return record.map { ($0, $0.cost) }
                }
                record.replace(sequence, by: entry)
                return record.variants.isEmpty ? nil : (record, record.cost)
            }
            return entry
        }
    }

    func contains(_ key: RequestKey) -> Bool {
        lookIfDue(at: MonotonicTime.nanoseconds)
        func isStored(_ key: RequestKey) -> Bool {
            memory.contains(key) || buffer.contains(key) || disk?.contains(key) == true
                || fallbacks.contains { $0.contains(key) }
        }
        return isStored(key) || (key.isForHead && isStored(key.storedForHead))
    }

    /// Why the disk, or one of the fallback directories, cannot be used.
    var openingError: DiskStoreError? {
        diskStore?.openingError ?? fallbacks.lazy.compactMap(\.openingError).first
    }

    // MARK: Bounds

    var memoryCapacity: Int {
        get { memory.costLimit }
        set { memory.costLimit = newValue }
    }

    var memoryUsage: Int { memory.totalCost }

    var diskUsage: Int { (disk?.usage ?? 0).addingSaturated(buffer.bytes) }

    /// The largest body that any layer takes, in bytes.
    var largestStorableBody: Int { max(largestMemoryEntry, disk?.largestEntry ?? 0) }

    var largestMemoryEntry: Int { memoryCapacity.share(configuration.maximumEntryFraction) }
}
