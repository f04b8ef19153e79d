import Foundation

/// Memory above the disk. All lookups, stores and removals go through this class.
///
/// A change is made on the caller's thread in all layers, first on disk, then in memory, while a lock for its key is
/// held: so all layers see the changes of a key in the same order. Lookups do not take that lock. What they read from
/// disk is put into memory, unless memory may have seen a change of the key meanwhile.
final class TieredStore: Sendable {
    let memory: MemoryCache<MemoryRecord>
    /// Responses that memory dropped when it ran short, and that the app still holds. Changed after memory.
    let weakResponses = MemoryCache<WeakResponse>(costLimit: .max)
    /// The layer below memory: the built-in one or an app's storage; nil without one.
    let disk: (any StorageLayer)?
    /// The same layer if it is the built-in one: for what an app's storage does not have, such as an order of use.
    let diskStore: DiskStore?
    /// Read-only stores, which are searched in order if the disk has nothing.
    let fallbacks: [DiskStore]
    let removals = RemovalCounters()
    let sequence = EntrySequence()
    let hub: EventHub
    let maintenance: MaintenanceQueue
    let clock: WallClock
    /// The size of the largest entry in memory, as a share of its capacity.
    private let maximumEntryFraction: Double

    /// The responses that `storeLater` has put into memory, and whose files the maintenance queue is still to write.
    /// Whatever changes or replaces one takes it out, while the stripe of its key is held. A mark leaves it, and marks
    /// it here, too. A removal may leave it: its ticket is older.
    let unwritten = Mutex<[RequestKey: [EntryMetadata]]>([:])

    /// Locks for changes. One would be enough; with sixteen, changes of different keys seldom wait for each other. They
    /// are taken before all other locks, and held across the file operations of a change. No thread waits for the
    /// maintenance queue while it holds one: that queue takes them for what `storeLater` has left.
    let stripes: [Mutex<Void>] = (0..<16).map { _ in Mutex((), isContended: true) }
    /// The time up to which the disk knows the uses that memory answered, in nanoseconds of the monotonic clock.
    private let notedUses = Mutex<UInt64>(0)

    /// - Parameter maintenance: the queue for the passes of the disk, whose work this store sets.
    init(
        memory: MemoryCache<MemoryRecord>, maximumEntryFraction: Double, disk: (any StorageLayer)?,
        maintenance: MaintenanceQueue, fallbacks: [DiskStore], hub: EventHub, clock: WallClock
    ) {
        self.clock = clock
        self.memory = memory
        self.maximumEntryFraction = maximumEntryFraction
        self.disk = disk
        diskStore = disk as? DiskStore
        self.fallbacks = fallbacks
        self.hub = hub
        self.maintenance = maintenance
        maintenance.setWork { [weak self] in self?.pass(isFlush: false) }
        disk?.observeChanges { [weak self] in self?.apply($0) }
        if disk != nil { maintenance.schedule(after: 0) }
    }

    deinit { close() }

    // MARK: Lookup

    /// The stored responses of a key.
    func lookup(_ key: RequestKey) -> Lookup {
        let now = MonotonicTime.nanoseconds
        // What other caches have removed is read first, where files may be used.
        guard disk?.isCheckDue(at: now) == true else { return lookup(key, at: now) }
        return Lookup { [self] in
            let now = MonotonicTime.nanoseconds
            disk?.checkIfDue(at: now)
            return lookup(key, at: now).variants()
        }
    }

    /// After the look for changes by other caches, if that was due.
    private func lookup(_ key: RequestKey, at now: UInt64) -> Lookup {
        let record = memory.use(key, at: now) { record in
            let isAll = record.isComplete || (disk == nil && fallbacks.isEmpty)
            return isAll ? record : nil
        }
        if let record { return Lookup(known: record.variants) }
        // Its body may come from a class of the app, so it is not asked for under the lock.
        if let entry = weakResponses.use(key, at: now, { $0 })?.entry {
            return Lookup(known: [StoredVariant(entry, from: .memory)])
        }
        if isUnknownBelow(key), !memory.contains(key) { return Lookup(known: []) }
        return Lookup { [self] in read(key) }
    }

    /// Nil with an app's storage, which several machines may share.
    var salt: CredentialSalt? { diskStore?.salt }

    /// True if certainly no layer below memory has anything for a key. Reads no record.
    func isUnknownBelow(_ key: RequestKey) -> Bool { fallbacks.isEmpty && disk?.mayContain(key) != true }

    /// Reads all layers. From then on memory knows all variants of the key. If the disk cannot be read at this moment,
    /// this is a miss, and nothing is remembered: what the other layers have could be older. An app's storage may be
    /// away for long: what memory has of this process's own loads answers meanwhile.
    private func read(_ key: RequestKey) -> [StoredVariant] {
        let generation = memory.generation(of: key)
        let known = memory.value(for: key)?.variants ?? []
        var below: [StoredVariant] = []
        if let disk {
            guard let all = disk.allVariants(of: key) else { return diskStore == nil ? known : [] }
            below = all
        }
        if let diskStore, diskStore.isShared, !below.isEmpty {
            let now = now
            below.removeAll { variant in
                guard removals.wasRemovedHere(key, variant.metadata, now: now) else { return false }
                // For good: a newer answer does not replace what its lookup did not find, so it must not come back.
                diskStore.remove(key, sequence: variant.metadata.sequence)
                return true
            }
        }
        if known.isEmpty, below.isEmpty { below = variantsInFallbacks(of: key) }
        for index in below.indices where below[index].entry == nil { below[index] = keeping(below[index], of: key) }
        let variants = Self.oneOfEach(known.isEmpty ? below : known + below)
        // If a loaded body is too large for memory, the next lookup reads again. What memory has may fill it.
        let limit = known.isEmpty ? largestMemoryEntry : memory.costLimit
        guard MemoryRecord(variants: variants, isComplete: true).cost <= limit else { return variants }
        let inMemory = variants.map { $0.entry == nil ? $0 : $0.from(.memory) }
        memory.promote(MemoryRecord(variants: inMemory, isComplete: true), for: key, readAt: generation)
        return variants
    }

    /// The variants in the first fallback directory that has any.
    private func variantsInFallbacks(of key: RequestKey) -> [StoredVariant] {
        for fallback in fallbacks {
            let variants = fallback.variants(of: key)
            if !variants.isEmpty { return variants.map { $0.from(.fallback) } }
        }
        return []
    }

    /// The most recent version of each variant, the most recent variant first.
    private static func oneOfEach(_ variants: [StoredVariant]) -> [StoredVariant] {
        guard variants.count > 1 else { return variants }
        var kept: [StoredVariant] = []
        for variant in variants {
            guard let place = kept.firstIndex(where: { $0.metadata.varyKey == variant.metadata.varyKey }) else {
                kept.append(variant)
                continue
            }
            // If two layers have the same version, the loaded one comes first, and stays.
            if variant.metadata.sequence > kept[place].metadata.sequence { kept[place] = variant }
        }
        return kept.sorted { $0.metadata.sequence > $1.metadata.sequence }
    }

    /// Wraps a variant so that loading its body updates memory: a body that fits is kept, and if the body is gone, the
    /// variant is dropped. The store is captured weakly, since memory keeps the wrapper.
    private func keeping(_ variant: StoredVariant, of key: RequestKey) -> StoredVariant {
        // A body that memory does not keep remains on disk, and may be opened instead of being read.
        let isKept = variant.bodyLength + StoredEntry.headCost(variant.metadata) <= largestMemoryEntry
        return StoredVariant(
            variant.metadata, bodyLength: variant.bodyLength, from: variant.layer, open: isKept ? nil : variant.open
        ) { [weak self] in
            let entry = variant.load()
            // Only if memory still has the variant: the key may have changed meanwhile.
            if isKept || entry == nil {
                self?.memory.update(key) { record in
                    record?.replace(variant.metadata, by: entry)
                    self?.keepWithinMemory(&record)
                }
            }
            return entry
        }
    }

    /// The variants of a key together may take more than memory may have, which keeps no such record. With fallback
    /// directories it goes as a whole: they are read for keys of which nothing is known.
    func keepWithinMemory(_ record: inout MemoryRecord?) {
        guard fallbacks.isEmpty, let count = record?.variants.count, count > 1 else { return }
        record?.keep(within: memory.costLimit)
    }

    /// - Parameter layer: nil for all; `.disk` is also a storage of the app.
    func contains(_ key: RequestKey, in layer: DiskURLCache.Layer?) -> Bool {
        disk?.checkIfDue(at: MonotonicTime.nanoseconds)
        return switch layer {
        case nil: memory.contains(key) || disk?.contains(key) == true || fallbacks.contains { $0.contains(key) }
        // Of some variants memory knows only that they are on disk.
        case .memory: memory.contains(key) { $0.variants.contains { $0.entry != nil } }
        case .disk: disk?.contains(key) == true
        case .fallback: fallbacks.contains { $0.contains(key) }
        default: false
        }
    }

    /// Why the disk or a fallback directory cannot be used; nil if all can.
    var openingError: DiskURLCache.Error? {
        diskStore?.openingError ?? fallbacks.lazy.compactMap(\.openingError).first
    }

    // MARK: Bounds

    /// The largest body that any layer accepts, in bytes.
    var largestStorableBody: Int { max(largestMemoryEntry, disk?.largestEntry ?? 0) }

    var largestMemoryEntry: Int { memory.costLimit.share(maximumEntryFraction) }

    // MARK: Maintenance

    /// False in a forked child process, which has no maintenance queue.
    private var isOpeningProcess: Bool { diskStore?.isOpeningProcess != false }

    /// The work of the maintenance queue, which keeps the disk within its capacity.
    func pass(isFlush: Bool) {
        guard let disk, isOpeningProcess, disk.beginPass(isFlush: isFlush) else { return }
        noteUses()
        disk.endPass(isFlush: isFlush)
    }

    /// The directory keeps to its capacity: above it a pass evicts at once, and when stores run an eighth ahead of the
    /// passes, the thread that stores waits for one. False if that made no room. A cache that does not maintain the
    /// directory leaves that to the one that does.
    func hasRoom(_ disk: DiskStore) -> Bool {
        let excess = disk.excess
        guard excess > 0 else { return true }
        guard excess > disk.capacity / 8 else {
            maintenance.schedule(after: 0)
            return true
        }
        maintenance.perform {
            noteUses()
            disk.evictIfNeeded()
        }
        return disk.excess <= disk.capacity / 8 || !disk.isOwner
    }

    /// Tells the disk about the uses that memory answered since the last call, so that the order of use is exact.
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

    /// Called when the cache is released: saves the index and releases everything.
    func close() {
        flush()
        if isOpeningProcess { disk?.close() }
    }
}

// Bodies that are written to disk while they arrive. Each becomes a record when it is whole.

extension TieredStore {
    /// Bodies up to this length are gathered in memory, in bytes.
    static let gatheringLimit = 1 << 20

    /// Whether a large body may be gathered on disk: the built-in disk layer exists, and accepts every body that memory
    /// accepts. An app's own storage gets whole bodies.
    var acceptsIncoming: Bool {
        guard let diskStore, diskStore.isOpeningProcess else { return false }
        return diskStore.largestEntry >= max(largestMemoryEntry, Self.gatheringLimit)
    }

    /// Makes a file without a name, for the part of a body that its client has not taken yet. Nobody else can open it,
    /// and the system frees it when the last reader has closed it, or with the process.
    func makeUnnamedFile() throws(Errno) -> IncomingBody {
        let file: IncomingBody
        if let own = try? diskStore?.beginIncoming() {
            file = own
        } else {
            let folder = DiskPaths(directory: NSTemporaryDirectory())
            file = try IncomingBody(SystemFiles(), folder, space: IncomingSpace(), locks: false)
        }
        file.discard()
        return file
    }

    /// Writes the next piece, after making room for it; the first piece makes the file. Returns the reason if that
    /// fails. Called by one thread at a time.
    func append(_ data: Data, to body: inout IncomingBody?) -> DiskURLCache.Reason? {
        guard let disk = diskStore else { return .diskFailed(errno: 0) }
        do throws(Errno) {
            if body == nil { body = try disk.beginIncoming() }
            guard let file = body else { throw Errno(0) }
            if file.reserve(data.count), !hasRoom(disk) { throw Errno(ENOSPC) }
            try file.append(data)
            return nil
        } catch {
            return .diskFailed(errno: error.code)
        }
    }
}
