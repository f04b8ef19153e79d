/// Memory over the disk: the one class that looks entries up, stores them and removes them.
///
/// Each change is made on the caller's thread, in all layers, while a lock of its key is held: so they see changes of
/// one key in the same order. The disk is changed first, memory after it. Lookups need no such lock: they bring what
/// they read from disk into memory unless memory saw a change of the key meanwhile.
final class TieredStore: Sendable {
    let memory: MemoryCache<RequestKey, MemoryRecord>
    /// Responses that memory gave up under pressure and the app still holds. Changed after memory.
    let weakResponses = MemoryCache<RequestKey, WeakResponse>(costLimit: .max)
    /// The layer under memory: the built-in one or an app's storage; nil when there is none.
    let disk: (any StorageLayer)?
    /// The same, if it is the built-in one: for functions that an app's storage does not have, such as an order of use.
    let diskStore: DiskStore?
    /// Read-only; asked in order when the disk has nothing.
    let fallbacks: [DiskStore]
    let removals = RemovalCounters()
    let sequence = EntrySequence()
    let hub: EventHub
    let maintenance: MaintenanceQueue
    /// The largest entry of memory as a share of its capacity.
    private let maximumEntryFraction: Double

    /// One stripe would do; sixteen keep changes of different keys apart. Taken before all other locks, and held across
    /// the file operations of a change. The maintenance queue takes none: a thread that holds one may wait for the
    /// queue.
    let stripes: [Mutex<Void>] = (0..<16).map { _ in Mutex((), isContended: true) }
    /// Whether lists of variations are stored (`VariationList`); nil as long as nobody looked. False where another
    /// process has stored the first one since: that costs hits, for a removal looks for the list itself.
    let hasVariations: Mutex<Bool?>
    /// Up to when the disk knows of the uses that memory answered, in nanoseconds of the monotonic clock.
    private let notedUses = Mutex<UInt64>(0)

    /// - Parameter maintenance: the queue on which the disk wants its passes, which become those of this store.
    init(
        memory: MemoryCache<RequestKey, MemoryRecord>, maximumEntryFraction: Double, disk: (any StorageLayer)?,
        maintenance: MaintenanceQueue, fallbacks: [DiskStore], hub: EventHub
    ) {
        self.memory = memory
        self.maximumEntryFraction = maximumEntryFraction
        self.disk = disk
        diskStore = disk as? DiskStore
        self.fallbacks = fallbacks
        self.hub = hub
        self.maintenance = maintenance
        hasVariations = Mutex(disk == nil && fallbacks.isEmpty ? false : nil)
        maintenance.setWork { [weak self] in self?.pass(isFlush: false) }
        disk?.observeChanges { [weak self] in self?.apply($0) }
        if disk != nil { maintenance.schedule(after: 0) }
    }

    deinit { close() }

    // MARK: Lookup

    /// The stored responses of a key. `HEAD` is answered from the responses for `GET`, and if there is none, from those
    /// for `HEAD`.
    func lookup(_ key: RequestKey) -> Lookup {
        guard key.isForHead else { return lookup(stored: key) }
        let (get, head) = (lookup(stored: key), lookup(stored: key.storedForHead))
        if let first = get.known, let second = head.known { return Lookup(known: first + second) }
        return Lookup { get.variants() + head.variants() }
    }

    private func lookup(stored key: RequestKey) -> Lookup {
        let now = MonotonicTime.nanoseconds
        disk?.checkIfDue(at: now)
        let record = memory.use(key, at: now) { $0.isComplete || (disk == nil && fallbacks.isEmpty) ? $0 : nil }
        if let record { return Lookup(known: record.variants) }
        if let entry = weakResponses.use(key, at: now, { $0.entry }) {
            return Lookup(known: [StoredVariant(entry, from: .memory)])
        }
        if isUnknownBelow(key), !memory.contains(key) { return Lookup(known: []) }
        return Lookup { [self] in read(key) }
    }

    /// Nil for an app's storage, which several machines may share.
    var salt: CredentialSalt? { diskStore?.salt }

    /// True only when no layer below memory has anything of a key. Reads no record.
    func isUnknownBelow(_ key: RequestKey) -> Bool { fallbacks.isEmpty && disk?.mayContain(key) != true }

    /// Asks every layer, and lets memory know all variants of the key from then on.
    private func read(_ key: RequestKey) -> [StoredVariant] {
        let ticket = memory.beginRead(key)
        let known = memory.value(for: key)?.variants ?? []
        var below = disk?.variants(of: key) ?? []
        if let diskStore, diskStore.isShared, !below.isEmpty {
            let now = diskStore.clock.now()
            below.removeAll { removals.wasRemovedHere(key, $0.metadata, now: now) }
        }
        if known.isEmpty, below.isEmpty {
            below = fallbacks.lazy.map { $0.variants(of: key) }.first { !$0.isEmpty }?.map { $0.from(.fallback) } ?? []
        }
        let variants = Self.oneOfEach(known + below.map { keeping($0, of: key) })
        let record = MemoryRecord(variants: variants.map { $0.entry == nil ? $0 : $0.from(.memory) }, isComplete: true)
        // If a body at hand is too large for memory, the next lookup asks again.
        memory.endRead(key, ticket: ticket, promoting: record.cost <= largestMemoryEntry ? record : nil)
        return variants
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

    /// The variant; when its body is read, memory keeps a body that is not too large, and forgets the variant if there
    /// is none. Memory may hold the variant, so that holds no store.
    private func keeping(_ variant: StoredVariant, of key: RequestKey) -> StoredVariant {
        guard variant.entry == nil else { return variant }
        // A body that memory does not keep stays on disk: it may be opened instead of read.
        let isKept = variant.bodyLength + StoredEntry.headCost(variant.metadata) <= largestMemoryEntry
        return StoredVariant(
            variant.metadata, bodyLength: variant.bodyLength, from: variant.layer, open: isKept ? nil : variant.open
        ) { [weak self] in
            let entry = variant.load()
            // Only what memory still lists: the key may have changed meanwhile.
            if isKept || entry == nil { self?.memory.update(key) { $0?.replace(variant.metadata.sequence, by: entry) } }
            return entry
        }
    }

    func contains(_ key: RequestKey) -> Bool {
        disk?.checkIfDue(at: MonotonicTime.nanoseconds)
        func isStored(_ key: RequestKey) -> Bool {
            memory.contains(key) || disk?.contains(key) == true || fallbacks.contains { $0.contains(key) }
        }
        return isStored(key) || (key.isForHead && isStored(key.storedForHead))
    }

    /// Why the disk, or one of the fallback directories, cannot be used.
    var openingError: DiskURLCache.Error? {
        diskStore?.openingError ?? fallbacks.lazy.compactMap(\.openingError).first
    }

    // MARK: Bounds

    /// The largest body that any layer takes, in bytes.
    var largestStorableBody: Int { max(largestMemoryEntry, disk?.largestEntry ?? 0) }

    var largestMemoryEntry: Int { memory.costLimit.share(maximumEntryFraction) }

    // MARK: Maintenance

    /// False in a forked child, which has no maintenance queue.
    private var isOpeningProcess: Bool { diskStore?.isOpeningProcess != false }

    /// The work of the maintenance queue: it keeps the disk within its bounds.
    func pass(isFlush: Bool) {
        guard let disk, isOpeningProcess, disk.beginPass(isFlush: isFlush) else { return }
        noteUses()
        lookForVariations()
        disk.endPass(isFlush: isFlush)
    }

    /// Tells the disk what memory answered since the last time, so that its order of use is exact.
    func noteUses() {
        let uses = notedUses.withLock { last in
            let uses = memory.uses(since: last)
            last = uses.reduce(last) { max($0, $1.time) }
            return uses
        }
        if !uses.isEmpty { diskStore?.noteUses(uses.map { ($0.key.name, $0.time) }) }
    }

    /// Returns when the disk is within its capacity, and its index is saved.
    func flush() {
        if isOpeningProcess { maintenance.perform { pass(isFlush: true) } }
    }

    /// The cache goes: its index is saved, and nothing is held any more.
    func close() {
        flush()
        if isOpeningProcess { disk?.close() }
    }
}
