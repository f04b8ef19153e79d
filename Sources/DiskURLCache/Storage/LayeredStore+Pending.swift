import Foundation

/// Stores that a caller need not wait for: accepted first, taken into the layers soon after ("settled").
///
/// A store that returned must be seen by every lookup that begins later. So it empties memory of its key as it is accepted,
/// under the lock of memory's shard; what does not find its key in memory settles it before it asks the disk, and so does each
/// change of the key. While a key is pending nothing else of it comes into memory: neither an older store that is being
/// settled nor what a read found on disk.
extension LayeredStore {
    /// Accepts a store that can wait; false where it is to be done at once.
    func accept(_ call: StoreCall) -> Bool {
        // Where the disk is behind, the caller has to be held up.
        guard let pendingDisk, !pendingDisk.isBehind else { return false }
        var addition = PendingStores.Addition.refused
        memory.removeValue(for: call.key) { isThere in
            // Of other variants memory may know more than the disk.
            guard !isThere || call.isOnlyVariant else { return false }
            addition = pending.add(call)
            if case .accepted = addition { return true }
            return false
        }
        guard case .accepted(let isFirst, let isPressing, _) = addition else { return false }
        if isFirst || isPressing { pendingDisk.scheduleSettling(isPressing: isPressing) }
        return true
    }

    /// Stores what a call wants to be stored, and tells what came of it.
    func perform(_ call: StoreCall, treatment: DiskURLCache.Treatment) {
        let settled = change(call.key) {
            let outcome = outcome(of: call, treatment)
            apply(outcome, call.key, isPatient: true)
            return Settled(call: call, outcome: outcome)
        }
        count(settled)
        tell(settled)
    }

    /// Takes in what is pending of a key.
    func settle(_ key: RequestKey) {
        if pending.contains(key) { change(key) {} }
    }

    /// Takes in all that was pending when it was called.
    func settleAll() {
        for key in pending.keys { settle(key) }
    }

    /// As `settleAll`, for the maintenance queue, which must not wait for a stripe: its holder may wait for the queue. False
    /// where something is pending still, or again.
    func settleWithoutWaiting() -> Bool {
        for key in pending.keys {
            if let settled = stripe(of: key).withLockIfAvailable({ _ in takeIn(key) }) { tell(settled) }
        }
        return pending.isEmpty
    }

    /// What came of a store.
    struct Settled {
        let call: StoreCall
        let outcome: StoreCall.Outcome
        /// Calls that it stands for.
        var count = 1
    }

    /// Takes in what is pending of a key, whose stripe is held; it is to be told when no lock is held any more. Nobody waits
    /// for the disk here.
    func takeIn(_ key: RequestKey) -> Settled? {
        guard let store = pending[key] else { return nil }
        // What a forked child inherits is its parent's to store.
        guard pendingDisk?.isOwnProcess != false else {
            pending.remove(store)
            return nil
        }
        let outcome = outcome(of: store.call, nil)
        apply(outcome, key, isPatient: false, pendingAs: store)
        let settled = Settled(call: store.call, outcome: outcome, count: store.count)
        // Before it is no longer pending: who reads the statistics settles first.
        count(settled)
        pending.remove(store)
        return settled
    }

    /// Drops what is pending of a key, whose stripe is held, before all that is stored of it is removed. The result is to be
    /// freed when no lock is held any more.
    func drop(_ key: RequestKey) -> PendingStores.Store? {
        guard let store = pending[key] else { return nil }
        hub.count { $0.stores += store.count }
        pending.remove(store)
        return store
    }

    private func outcome(of call: StoreCall, _ treatment: DiskURLCache.Treatment?) -> StoreCall.Outcome {
        call.outcome(treatment: treatment, limit: largestStorableBody)
    }

    private func apply(
        _ outcome: StoreCall.Outcome, _ key: RequestKey, isPatient: Bool, pendingAs own: PendingStores.Store? = nil
    ) {
        switch outcome {
        case .stored(let entry, _):
            place(entry, for: key, onDisk: !entry.metadata.isMemoryOnly, isPatient: isPatient, pendingAs: own)
        case .refused(_, let removesOlder): if removesOlder { erase(key) }
        }
    }

    private func count(_ settled: Settled) {
        if case .stored = settled.outcome { hub.count { $0.stores += settled.count } }
    }

    func tell(_ settled: Settled?) {
        guard let settled else { return }
        switch settled.outcome {
        case .stored(let entry, let lost):
            let url = entry.metadata.url
            if !lost.isEmpty { hub.emit(.userInfoKeptInMemory(url: url, keys: lost)) }
            hub.emit(.stored(url: url, bytes: entry.body.count, inMemoryOnly: entry.metadata.isMemoryOnly))
        case .refused(let reason, _):
            hub.emit(.notStored(url: settled.call.request.url?.withoutCredentials, reason: reason))
        }
    }
}
