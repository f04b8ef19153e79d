import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Memory over disk: the one place where an entry is looked up, stored and removed.
///
/// Each change goes to both layers under a lock of its key, so that memory and disk see changes of one key in the same
/// order. Lookups need no such lock: they may bring what they read from disk into memory unless memory saw a change of the
/// key meanwhile. So the disk is changed first: a read of what was there before is voided by the change of memory after it.
///
/// A store may have been accepted only. Memory then holds nothing of its key until the store is settled, which whatever cannot
/// be answered from memory does first: see `LayeredStore+Pending.swift`.
final class LayeredStore: Sendable {
    /// The stored variants of one key that memory holds.
    struct MemoryRecord: Sendable {
        /// Most recent first.
        var entries: [StoredEntry] {
            didSet { noteFirst() }
        }
        /// The first one where it answers every request, as nearly all do: a hit then does without the list, whose references
        /// threads would count in turns.
        private(set) var answer: StoredEntry?
        /// False when the disk may hold further variants: the first store of a key was a variant by `Vary`.
        var isComplete: Bool
        /// Names the resource, see `DiskKey.uriHash`.
        var uriHash: UInt32
        var hostHash: UInt32
        /// Kept so that a memory hit can be told to the disk's LRU without computing a digest.
        var diskKey: DiskKey?

        init(entries: [StoredEntry], isComplete: Bool, uriHash: UInt32, hostHash: UInt32, diskKey: DiskKey?) {
            self.entries = entries
            self.isComplete = isComplete
            self.uriHash = uriHash
            self.hostHash = hostHash
            self.diskKey = diskKey
            noteFirst()
        }

        private mutating func noteFirst() {
            answer = entries.first.flatMap { $0.answersEveryRequest ? $0 : nil }
        }

        var cost: Int { entries.reduce(0) { $0 + $1.memoryCost } }
    }

    let memory: MemoryCache<RequestKey, MemoryRecord>
    /// Nil when the disk layer is off.
    let disk: (any StorageLayer)?
    /// An app's own memory layer, asked between the built-in one and the disk.
    private let memoryStorage: (any StorageLayer)?
    /// For which stores can be pending: the built-in disk store, where no layer of an app's own lies above it.
    let pendingDisk: DiskStore?
    /// Read-only; asked in order when the disk has nothing.
    private let fallbacks: [DiskStore]
    private let maximumMemoryShare: Double
    /// What memory gave up under pressure and the app still holds.
    private let weakResponses = WeakResponses()
    let pending: PendingStores
    let hub: EventHub

    // One stripe would do; sixteen keep stores of different keys apart.
    private let stripes: [Mutex<Void>] = (0..<16).map { _ in Mutex((), isContended: true) }

    /// - Parameter pendingByteLimit: bytes of what is accepted and in no layer yet.
    init(
        memoryCapacity: Int, memoryCountLimit: Int, maximumMemoryShare: Double,
        memoryStorage: (any StorageLayer)?, disk: (any StorageLayer)?, fallbacks: [DiskStore],
        pendingByteLimit: Int, hub: EventHub
    ) {
        memory = MemoryCache(costLimit: memoryCapacity, countLimit: memoryCountLimit)
        self.maximumMemoryShare = maximumMemoryShare
        self.memoryStorage = memoryStorage
        self.disk = disk
        pendingDisk = memoryStorage == nil ? disk as? DiskStore : nil
        self.fallbacks = fallbacks
        pending = PendingStores(byteLimit: pendingByteLimit)
        self.hub = hub
        pendingDisk?.settle.withLock { settle in
            settle = { [weak self] in self?.settleWithoutWaiting() ?? true }
        }
    }

    // MARK: Lookup

    /// All stored variants of a key where memory knows them all, the most recent first; nil where the disk must be
    /// asked.
    func variantsInMemory(for key: RequestKey) -> [StoredVariant]? {
        guard let found = memory.value(for: key) else {
            guard hasOnlyMemory else { return nil }
            return weakResponses.entry(for: key).map { [StoredVariant($0, from: .memory)] } ?? []
        }
        return variants(of: found)
    }

    private var hasOnlyMemory: Bool { disk == nil && memoryStorage == nil && fallbacks.isEmpty }

    private func variants(of found: MemoryCache<RequestKey, MemoryRecord>.Hit) -> [StoredVariant]? {
        guard found.value.isComplete || hasOnlyMemory else { return nil }
        if found.isDueForReport, let diskKey = found.value.diskKey { disk?.touch(diskKey) }
        return found.value.entries.map { StoredVariant($0, from: .memory) }
    }

    enum MemoryAnswer {
        case entry(StoredEntry)
        /// Memory knows all that is stored for the key, and none of it answers.
        case nothing
        /// Memory has nothing of the key; the disk may.
        case absent
        /// Memory has some variants; the disk may have others.
        case incomplete
    }

    /// The most recent stored entry that answers a request, where memory can tell.
    func answerFromMemory(for key: RequestKey, _ request: URLRequest) -> MemoryAnswer {
        // What the weak table holds is found by `variants(for:inMemory:)`.
        var answer = MemoryAnswer.absent
        var isDue = false
        let entry: StoredEntry? = memory.hit(key) { record, isDueForReport in
            guard record.isComplete || hasOnlyMemory else {
                answer = .incomplete
                return nil
            }
            answer = .nothing
            isDue = isDueForReport
            if let entry = record.answer { return (entry, entry.body.count) }
            for entry in record.entries where entry.answers(request) { return (entry, entry.body.count) }
            return nil
        }
        // The disk is told outside of memory's lock.
        if isDue, let diskKey = memory.value(for: key)?.value.diskKey { disk?.touch(diskKey) }
        return entry.map { .entry($0) } ?? answer
    }

    /// The stored entry of a key that is a URL, where the disk has a short way to it and memory has nothing; nil says nothing.
    func loneEntryOnDisk(for key: RequestKey, _ request: URLRequest) -> StoredEntry? {
        guard let disk, memoryStorage == nil, weakResponses.isEmpty, !pending.contains(key) else { return nil }
        let uriHash = key.uriHash
        var promotion: Promotion?
        if largestMemoryEntry > 0 {
            // A miss need not be announced.
            guard disk.mayContain(uriHash: uriHash) else { return nil }
            promotion = Promotion(of: key, into: memory)
        }
        // Asked again: a store may have come from pending into memory since.
        guard !memory.contains(key), let found = disk.loneEntry(ofURL: key.text, uriHash: uriHash),
            found.entry.answers(request)
        else { return nil }
        if let promotion { keep(found.entry, found.key, promotion) }
        return found.entry
    }

    private func keep(_ entry: StoredEntry, _ diskKey: DiskKey, _ promotion: Promotion) {
        let record = MemoryRecord(
            entries: [entry], isComplete: true, uriHash: diskKey.uriHash, hostHash: diskKey.hostHash, diskKey: diskKey)
        if record.cost <= largestMemoryEntry { promotion.keep(record, unless: pending) }
    }

    /// All stored variants of a key, the most recent first.
    func variants(for key: RequestKey) -> [StoredVariant] {
        let inMemory = memory.value(for: key)
        if let inMemory, let variants = variants(of: inMemory) { return variants }
        return variants(for: key, inMemory: inMemory)
    }

    /// The same where memory was asked already: it has nothing of the key, or not all.
    func variants(
        for key: RequestKey, inMemory: MemoryCache<RequestKey, MemoryRecord>.Hit?
    ) -> [StoredVariant] {
        settle(key)
        var inMemory = inMemory
        if inMemory == nil {
            // Asked again: a store may have come from pending into memory since.
            inMemory = memory.value(for: key)
            if let inMemory, let variants = variants(of: inMemory) { return variants }
        }
        if inMemory == nil, let entry = weakResponses.entry(for: key) {
            return [StoredVariant(entry, from: .memory)]
        }
        if inMemory == nil, fallbacks.isEmpty, memoryStorage == nil, disk?.mayContain(uriHash: key.uriHash) != true {
            return []
        }
        let diskKey = key.diskKey
        var known = inMemory?.value.entries ?? []
        known += memoryStorage?.candidates(for: diskKey).compactMap { $0.load() } ?? []
        // An entry without `Vary` answers every request: nothing older could win over it.
        if memoryStorage != nil, known.contains(where: { $0.metadata.varyKey == .none }) {
            return known.map { StoredVariant($0, from: .memory) }
        }
        // Without a memory layer there is nothing to keep it in.
        let promotion = largestMemoryEntry > 0 ? Promotion(of: key, into: memory) : nil
        var layer = DiskURLCache.Layer.disk
        var candidates = disk?.candidates(for: diskKey) ?? []
        if candidates.isEmpty, known.isEmpty {
            layer = .fallback
            candidates = fallbacks.lazy.map { $0.candidates(for: diskKey) }.first { !$0.isEmpty } ?? []
        }
        // A lone variant is kept in memory once its body is read, unless the key changes before.
        if candidates.count == 1, known.isEmpty {
            let candidate = candidates[0]
            return [
                StoredVariant(candidate, from: layer) { [self] in
                    guard let entry = candidate.load() else { return nil }
                    if let promotion { keep(entry, diskKey, promotion) }
                    return entry
                }
            ]
        }
        var variants = known.map { StoredVariant($0, from: .memory) }
        for candidate in candidates where !known.contains(where: { $0.metadata.varyKey == candidate.metadata.varyKey })
        {
            variants.append(StoredVariant(candidate, from: layer) { candidate.load() })
        }
        return variants.sorted { $0.metadata.sequence > $1.metadata.sequence }
    }

    func contains(_ key: RequestKey) -> Bool {
        settle(key)
        guard !memory.contains(key) else { return true }
        let diskKey = key.diskKey
        return memoryStorage?.contains(diskKey) == true || disk?.contains(diskKey) == true
            || fallbacks.contains { $0.contains(diskKey) }
    }

    // MARK: Changes

    /// Stores an entry in place of the one with the same variant. Returns when every later lookup will see it.
    func store(_ entry: StoredEntry, for key: RequestKey, onDisk: Bool = true) {
        change(key) { place(entry, for: key, onDisk: onDisk, isPatient: true) }
    }

    /// As `store`, with the key's stripe held and nothing older of it pending.
    ///
    /// - Parameter own: the pending store that this is.
    func place(
        _ entry: StoredEntry, for key: RequestKey, onDisk: Bool, isPatient: Bool,
        pendingAs own: PendingStores.Store? = nil
    ) {
        weakResponses.remove(key)
        var diskKey = disk == nil && memoryStorage == nil ? nil : key.diskKey
        diskKey?.isURL = key.isURL && key.text == entry.metadata.url
        if let disk, let diskKey {
            if onDisk, !entry.metadata.isMemoryOnly {
                disk.store(entry, for: diskKey, isPatient: isPatient)
            } else {
                disk.remove(diskKey)
            }
        }
        if let diskKey { memoryStorage?.store(entry, for: diskKey, isPatient: isPatient) }
        let isKept = entry.memoryCost <= largestMemoryEntry
        memory.update(key) { current in
            // What was accepted meanwhile takes the place of this one, or stands beside it.
            let newer = pending[key].flatMap { $0 === own ? nil : $0 }
            if let newer, newer.call.isOnlyVariant { return nil }
            guard isKept || current != nil else { return nil }
            var record =
                current
                ?? MemoryRecord(
                    entries: [], isComplete: false, uriHash: diskKey?.uriHash ?? key.uriHash,
                    hostHash: diskKey?.hostHash ?? key.hostHash, diskKey: diskKey)
            record.entries.removeAll { $0.metadata.varyKey == entry.metadata.varyKey }
            // An entry without `Vary` answers every request: nothing older could win over it.
            record.isComplete = (record.isComplete || entry.metadata.varyKey == .none) && newer == nil
            if isKept {
                record.entries.insert(entry, at: 0)
            } else {
                record.isComplete = false
            }
            return record.entries.isEmpty ? nil : (record, record.cost)
        }
    }

    func remove(_ key: RequestKey) {
        let dropped = stripe(of: key).withLock { _ in
            let dropped = drop(key)
            erase(key)
            return dropped
        }
        _ = dropped
    }

    /// As `remove`, with the key's stripe held.
    func erase(_ key: RequestKey) {
        if !hasOnlyMemory {
            let diskKey = key.diskKey
            disk?.remove(diskKey)
            memoryStorage?.remove(diskKey)
        }
        memory.removeValue(for: key)
        weakResponses.remove(key)
    }

    /// Removes one variant.
    func remove(_ key: RequestKey, sequence: UInt64) {
        change(key) {
            if !hasOnlyMemory {
                let diskKey = key.diskKey
                disk?.remove(diskKey, sequence: sequence)
                memoryStorage?.remove(diskKey, sequence: sequence)
            }
            memory.update(key) { current in
                guard var record = current else { return nil }
                record.entries.removeAll { $0.metadata.sequence == sequence }
                return record.entries.isEmpty ? nil : (record, record.cost)
            }
            weakResponses.remove(key)
        }
    }

    /// Removes what matches from both layers; `inMemory` tells the same of an entry in memory.
    func remove(matching criteria: DiskCriteria, inMemory: (MemoryRecord, EntryMetadata) -> Bool) {
        settleAll()
        changingAll {
            disk?.remove(matching: criteria)
            memoryStorage?.remove(matching: criteria)
            removeFromMemory(where: inMemory)
            weakResponses.removeAll()
        }
    }

    func removeAll() {
        var dropped: [PendingStores.Store] = []
        changingAll {
            dropped = pending.removeAll()
            disk?.removeAll()
            emptyMemory()
        }
        let count = dropped.reduce(0) { $0 + $1.count }
        if count > 0 { hub.count { $0.stores += count } }
    }

    func removeMemory() {
        settleAll()
        emptyMemory()
    }

    private func emptyMemory() {
        memoryStorage?.removeAll()
        memory.removeAll()
        weakResponses.removeAll()
    }

    /// Empties memory, but what the app still holds of it can be found.
    func relieveMemory() {
        settleAll()
        changingAll {
            memory.forEachValue { key, record in
                // A lone response answers for its key; of several variants one alone would say too little.
                guard record.isComplete, record.entries.count == 1, let response = record.entries[0].presentedResponse
                else { return }
                weakResponses.add(response, record.entries[0].metadata, for: key)
            }
            memory.removeAll()
        }
    }

    func removeDisk() {
        settleAll()
        changingAll {
            disk?.removeAll()
        }
    }

    // MARK: Bounds

    /// Bytes the memory layers may take: the app's own layer stands in place of ours.
    var memoryCapacity: Int {
        get { memoryStorage?.capacity ?? memory.costLimit }
        set {
            if let memoryStorage { memoryStorage.capacity = newValue } else { memory.costLimit = newValue }
        }
    }

    var memoryUsage: Int {
        settleAll()
        return memory.totalCost + (memoryStorage?.usage ?? 0)
    }

    var diskUsage: Int {
        settleAll()
        return disk?.usage ?? 0
    }

    /// See `StorageLayer.flush`.
    func flush() {
        settleAll()
        disk?.flush()
    }

    /// See `StorageLayer.close`.
    func close() {
        settleAll()
        disk?.close()
    }

    /// The largest body that either layer would take, in bytes.
    var largestStorableBody: Int {
        max(largestMemoryEntry, Int(Double(disk?.capacity ?? 0) * maximumMemoryShare))
    }

    var largestMemoryEntry: Int {
        Int(Double(memoryCapacity) * maximumMemoryShare)
    }

    private func removeFromMemory(where shouldRemove: (MemoryRecord, EntryMetadata) -> Bool) {
        memory.updateAll { record in
            var kept = record
            kept.entries.removeAll { shouldRemove(record, $0.metadata) }
            return kept.entries.isEmpty ? nil : (kept, kept.cost)
        }
    }

    /// Changes one key: what is pending of it comes first.
    func change<Result>(_ key: RequestKey, _ body: () -> Result) -> Result {
        let (settled, result) = stripe(of: key).withLock { _ in (takeIn(key), body()) }
        tell(settled)
        return result
    }

    func stripe(of key: RequestKey) -> Mutex<Void> { stripes[key.stripe(of: stripes.count)] }

    /// Takes the stripes in their order, so that two such changes cannot wait for each other.
    private func changingAll(_ body: () -> Void) {
        func take(_ index: Int) {
            guard index < stripes.count else { return body() }
            stripes[index].withLock { _ in take(index + 1) }
        }
        take(0)
    }
}

/// A read of the disk that may end in memory, if the key does not change meanwhile; given up when let go.
final class Promotion: Sendable {
    private let key: RequestKey
    private let memory: MemoryCache<RequestKey, LayeredStore.MemoryRecord>
    private let ticket: UInt64

    init(of key: RequestKey, into memory: MemoryCache<RequestKey, LayeredStore.MemoryRecord>) {
        self.key = key
        self.memory = memory
        ticket = memory.beginRead(key)
    }

    deinit {
        memory.endRead(key, ticket: ticket, promoting: nil)
    }

    /// A store that is pending is not seen by reads of the disk.
    func keep(_ record: LayeredStore.MemoryRecord, unless pending: PendingStores) {
        memory.endRead(key, ticket: ticket, promoting: (record, record.cost)) { pending.contains(key) }
    }
}

/// One stored variant, its body perhaps still on disk.
struct StoredVariant: Sendable {
    let metadata: EntryMetadata
    let bodyLength: Int
    let layer: DiskURLCache.Layer
    /// The whole entry, where it is at hand.
    let entry: StoredEntry?
    /// The whole entry; nil when it turned out missing or damaged. May read the disk on the caller's thread.
    let load: @Sendable () -> StoredEntry?

    /// A variant whose body is at hand.
    init(_ entry: StoredEntry, from layer: DiskURLCache.Layer) {
        metadata = entry.metadata
        bodyLength = entry.body.count
        self.layer = layer
        self.entry = entry
        load = { entry }
    }

    init(
        _ candidate: DiskCandidate, from layer: DiskURLCache.Layer, load: @escaping @Sendable () -> StoredEntry?
    ) {
        metadata = candidate.metadata
        bodyLength = candidate.bodyLength
        self.layer = layer
        entry = nil
        self.load = load
    }

    func answers(_ request: RequestFacts) -> Bool {
        metadata.answers(request.fields)
    }
}

extension [StoredVariant] {
    /// With what one of them loaded, so that it is not read again.
    func holding(_ entry: StoredEntry, at index: Int) -> [StoredVariant] {
        guard self[index].entry == nil else { return self }
        var variants = self
        variants[index] = StoredVariant(entry, from: self[index].layer)
        return variants
    }
}
