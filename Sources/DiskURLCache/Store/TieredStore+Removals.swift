/// What other caches of the directory removed, of this process or another one: gone from all layers at the next lookup.
///
/// What was stored here after such a removal stays: each store takes in first what was removed before it.
extension TieredStore {
    /// A few loads and comparisons where nothing was removed.
    @inline(__always)
    func takeRemovals(at now: UInt64) {
        if let disk, disk.hasRemovals(at: now) { takeRemovals(of: disk) }
    }

    /// Also where that costs a look at a file.
    func takeRemovalsNow(isCertain: Bool = false) {
        disk?.lookForRemovals(isCertain: isCertain)
        takeRemovals(at: MonotonicTime.nanoseconds)
    }

    /// May be called with a key's stripe held, and takes none. Not to be called while `writing` is held.
    private func takeRemovals(of disk: any StorageLayer) {
        let start = MonotonicTime.nanoseconds
        defer { unconfirmed.withLock { $0.removeAll { $0.time < start } } }
        disk.takeRemovals { news in
            let removals = ForeignRemovals(news)
            for removal in removals.noted { history.note(removal) }
            let cancelled = buffer.cancelAll { removals.concern($0, $1.metadata, variants: false) }
            // What is being written at this moment is erased with the rest.
            writing.withLock { _ in }
            // The older versions of what is buffered may not match, and are not to come back.
            for write in cancelled { disk.remove(write.key, variant: write.entry.metadata.varyKey) }
            for write in unconfirmed.withLock({ $0 })
            where removals.concern(write.key, write.metadata, variants: false) {
                disk.remove(write.key, sequence: write.metadata.sequence)
            }
            buffer.drop(cancelled)
            memory.updateAll { key, record in
                var kept = record
                kept.removeAll { removals.concern(key, $0.metadata) }
                if kept.variants.count < record.variants.count { _ = buffer.noteAlone(key) }
                return kept.variants.isEmpty ? nil : (kept, kept.cost)
            }
            weakResponses.removeAll()
        }
        updateReserved()
    }
}

/// An entry that was written while a removal by another cache may have been under way, unseen.
struct UnconfirmedWrite: Sendable {
    let key: RequestKey
    let metadata: EntryMetadata
    /// When it was written, in nanoseconds of the monotonic clock.
    let time: UInt64
}

extension TieredStore {
    /// With `writing` held.
    func noteUnconfirmed(_ key: RequestKey, _ metadata: EntryMetadata) {
        let unconfirmed = UnconfirmedWrite(key: key, metadata: metadata, time: MonotonicTime.nanoseconds)
        self.unconfirmed.withLock { $0.append(unconfirmed) }
    }
}

/// Removals by others, put together so that each entry is looked at once.
struct ForeignRemovals: Sendable {
    /// For the history: what is under way is not to be stored after them. That a variant went concerns stored ones only.
    let noted: [RemovalHistory.Removal]
    /// Each once.
    let each: Set<SharedRemoval>
    private var isEverything = false
    private var keys: Set<KeyName> = []
    private var variants: Set<KeyName> = []
    private var criteria: Set<SharedCriteria> = []

    init(_ news: RemovalLog.News) {
        var noted: [RemovalHistory.Removal] = []
        guard case .removed(let removals) = news, !removals.contains(.everything) else {
            self.noted = [.everything]
            each = [.everything]
            isEverything = true
            return
        }
        for removal in removals {
            switch removal {
            case .key(let name): if keys.insert(name).inserted { noted.append(.shared(removal)) }
            case .matching(let given): if criteria.insert(given).inserted { noted.append(.shared(removal)) }
            case .variant(let name): variants.insert(name)
            case .everything: break
            }
        }
        self.noted = noted
        each = Set(removals)
    }

    /// - Parameter includesVariants: whether an entry goes that may be a variant that was removed.
    func concern(_ key: RequestKey, _ metadata: EntryMetadata, variants includesVariants: Bool = true) -> Bool {
        if isEverything || contain(key.name, includesVariants) { return true }
        return !criteria.isEmpty
            && criteria.contains { $0.matches(metadata, uriHash: key.uriHash, hostHash: key.hostHash) }
    }

    private func contain(_ name: KeyName, _ includesVariants: Bool) -> Bool {
        keys.contains(name) || (includesVariants && variants.contains(name))
    }
}
