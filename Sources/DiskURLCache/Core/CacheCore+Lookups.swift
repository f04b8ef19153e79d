import Foundation

// Lookups by `URLCache`'s own methods, which find stored responses whether fresh or stale.

extension CacheCore {
    /// The stored entry for a request; counts as a hit or a miss. A `HEAD` is answered by the response to a `GET`; the
    /// caller leaves out its body. May read the disk on the caller's thread.
    func entry(for request: URLRequest) -> (entry: StoredEntry, isForHead: Bool)? {
        var asked = FieldDigests(of: HeaderFields(request))
        let plainKey = plainKey(for: request, asked.fields)
        // A plain request is not affected by rules or options.
        let hop = plainKey == nil ? resolve(DiskURLCache.Request(request)) : nil
        guard let key = plainKey ?? hop?.key else { return nil }
        if let hop { asked = FieldDigests(of: hop.facts.fields) }
        let variant = store.lookup(key).variants().first {
            $0.answers(&asked) && !(isBySystem && SystemHead.isSelectedUnseen($0.metadata.varyKey))
        }
        // If a rule keeps it out, or its body is damaged or was replaced meanwhile, this is a miss: an older variant
        // would be the wrong answer.
        guard let variant, hop?.accepts(variant) != false, let entry = variant.load() else {
            hub.count(for: key) { $0.misses += 1 }
            return nil
        }
        hub.count(for: key) { $0.countHit(variant.layer, bytes: key.isForHead ? 0 : entry.body.count) }
        if let hop { addTags(to: variant, of: hop) }
        return (entry, key.isForHead)
    }

    /// The held answer to a request, since its URL is not to be asked again yet; nil if there is none. A `HEAD` may use
    /// the answer to a `GET`.
    func heldAnswer(to hop: ResolvedRequest) -> StoredVariant? {
        guard hop.mayRest, let key = hop.key else { return nil }
        for forHead in key.isForHead ? [true, false] : [false] {
            let record = store.memory.use(key.held(forHead: forHead), at: MonotonicTime.nanoseconds) { $0 }
            guard let variants = record?.variants else { continue }
            let options = cachingOptions(for: hop, stored: variants)
            let decider = RequestDecider(
                request: hop.facts, variants: variants, policy: hop.request.policy, options: options, now: now)
            // Once its time is over, it answers no request, not even offline.
            if case .useStored(let reuse) = decider.decision(),
                reuse.variant.reuseFacts.rest(options, now: now) != nil
            {
                return reuse.variant
            }
        }
        return nil
    }

    /// Whether memory has everything that is stored for a key; for the system's loader, in the form that it accepts.
    func isAtHand(_ key: RequestKey) -> Bool {
        let isKnown = store.lookup(key).known?.allSatisfy {
            isBySystem ? $0.entry?.presentedResponse != nil : $0.entry != nil
        }
        return isKnown == true
    }

    func remove(_ request: URLRequest) {
        if let key = key(for: request) { store.remove(key) }
    }

    package func remove(_ request: DiskURLCache.Request, variant: String?) {
        if let key = resolve(request, variant: variant).key { store.remove(key) }
    }

    /// Pins the stored responses to a request, or unpins them. False if none is stored.
    func setPinned(_ isPinned: Bool, for request: URLRequest) -> Bool {
        guard let key = key(for: request) else { return false }
        var isFound = false
        for variant in store.lookup(key).variants() {
            let metadata = variant.metadata
            let updated = store.update(metadata, of: key) { $0.isPinned = isPinned }
            isFound = isFound || updated != nil
        }
        return isFound
    }
}
