import Foundation

/// The last answers of URLs that the app does not want to ask again yet, if those answers may not be stored: responses
/// with `no-store`, say, and failures. In memory only, up to a limit.
///
/// The last answer is that to the load that asked last: the answer to one that asked before may arrive after it.
final class RecentAnswers: Sendable {
    enum Content: Sendable {
        case response(StoredVariant)
        case failure(any Swift.Error)
        /// There was an answer, which is not held: it was stored, say. Noted, so that no older one is held after it.
        case nothing

        fileprivate var bytes: Int {
            switch self {
            case .response(let variant): variant.bodyLength + StoredEntry.headCost(variant.metadata)
            case .failure: 1_024
            case .nothing: 256
            }
        }
    }

    struct Heard: Sendable {
        let content: Content
        let at: Date
        /// The number of the ticket with which the origin was asked: what was removed since then is not used.
        fileprivate let ticket: UInt64
    }

    /// Guarded by the lock around it.
    private struct State {
        var heard: [RequestKey: Heard] = [:]
        var bytes = 0

        mutating func remove(_ key: RequestKey) -> Heard? {
            guard let old = heard.removeValue(forKey: key) else { return nil }
            bytes -= old.content.bytes
            return old
        }
    }

    private let state = Mutex(State())
    /// In bytes.
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    /// Replaces the last answer of the same key, unless that was asked for later.
    func note(_ content: Content, for key: RequestKey, _ ticket: StoreTicket, at now: Date) {
        let content = content.bytes <= limit ? content : .nothing
        // Errors of an app are released outside of the lock.
        let dropped = state.withLock { state -> [Heard?] in
            if let last = state.heard[key], last.ticket > ticket.number { return [] }
            var dropped = [state.remove(key)]
            state.heard[key] = Heard(content: content, at: now, ticket: ticket.number)
            state.bytes += content.bytes
            guard state.bytes > limit else { return dropped }
            // The oldest are removed until half of the limit is free, so that this sorting is rare.
            for (key, _) in state.heard.sorted(by: { $0.value.at < $1.value.at }) where state.bytes > limit / 2 {
                dropped.append(state.remove(key))
            }
            return dropped
        }
        withExtendedLifetime(dropped) {}
    }

    /// - Parameter lastRemoval: the number of the last removal that may have concerned the key.
    func heard(from key: RequestKey, lastRemoval: UInt64) -> Heard? {
        let (heard, isRemoved) = state.withLock { state -> (Heard?, Bool) in
            guard let heard = state.heard[key] else { return (nil, false) }
            // Released by the caller of this method, outside of the lock.
            return lastRemoval > heard.ticket ? (state.remove(key), true) : (heard, false)
        }
        if isRemoved { return nil }
        if case .nothing? = heard?.content { return nil }
        return heard
    }

    func removeAll() {
        let old = state.withLock { state in
            defer { state = State() }
            return state
        }
        withExtendedLifetime(old) {}
    }
}

// How loads use the table.

extension CacheCore {
    /// The held response that answers the request, since its URL is not to be asked again yet; nil if there is none.
    package func restingAnswer(to hop: ResolvedRequest) -> StoredVariant? {
        guard hop.mayRest, case .response(let variant)? = heard(by: hop)?.content, variant.isHTTP else {
            return nil
        }
        let options = cachingOptions(for: hop, response: variant.response.fields)
        // Nobody is asked, so an old error of the server is no reason against a stored response.
        if options.isOffline, StatusCode.isServerTrouble(variant.response.status) { return nil }
        let now = self.now
        // Once its time is over, the response answers no request, not even offline.
        guard variant.reuseFacts.rest(options, now: now) != nil else { return nil }
        let decider = RequestDecider(
            request: hop.facts, variants: [variant], policy: hop.request.policy,
            options: options, now: now)
        guard case .useStored = decider.decision() else { return nil }
        return variant
    }

    /// The error with which the last request failed, if the URL is not to be asked again yet.
    func restingFailure(of hop: ResolvedRequest) -> (any Swift.Error)? {
        guard let interval = hop.options.minimumInterval, !hop.facts.directives.wantOrigin(hop.request.policy),
            let heard = heard(by: hop), case .failure(let error) = heard.content
        else { return nil }
        let elapsed = now.timeIntervalSince(heard.at)
        return elapsed >= 0 && elapsed < interval.seconds ? error : nil
    }

    /// The last answer to the same request. A `HEAD` may use the answer to a `GET`.
    private func heard(by hop: ResolvedRequest) -> RecentAnswers.Heard? {
        guard let key = hop.decision.key else { return nil }
        let lastRemoval = store.removals.last(concerning: key)
        if key.isForHead, let heard = recent.heard(from: key.storedForHead, lastRemoval: lastRemoval) { return heard }
        return recent.heard(from: key, lastRemoval: lastRemoval)
    }

    /// Notes that the origin could not be asked, or is in trouble (5xx).
    func noteFailure(_ error: any Swift.Error, of hop: ResolvedRequest, _ ticket: StoreTicket?) {
        let isCancellation = error is CancellationError || (error as? URLError)?.code == .cancelled
        guard !isCancellation, hop.options.minimumInterval != nil, let key = hop.ownKey, let ticket else { return }
        recent.note(.failure(error), for: key, ticket, at: now)
    }

    /// Notes that an answer arrives: what was heard before is out of date.
    func noteAnswer(status: Int, to hop: ResolvedRequest, _ ticket: StoreTicket?) {
        guard hop.mayRest, let key = hop.ownKey, let ticket, status >= 200 else { return }
        if StatusCode.isServerTrouble(status) {
            noteFailure(URLError(.badServerResponse), of: hop, ticket)
        } else {
            recent.note(.nothing, for: key, ticket, at: now)
        }
    }

    /// Holds a response that may not be stored.
    func hold(_ draft: EntryDraft, for hop: ResolvedRequest, _ ticket: StoreTicket?) {
        guard let key = hop.ownKey, let ticket, case .memory(let body) = draft.body else { return }
        let metadata = EntryMetadata(
            url: draft.url, response: draft.correctedResponse, storedAt: now, placement: .memoryOnly,
            userInfo: draft.edited.userInfo)
        let entry = StoredEntry(metadata: metadata, body: body)
        recent.note(.response(StoredVariant(entry, from: .memory)), for: key, ticket, at: now)
    }
}

extension ResolvedRequest {
    /// The answer to a `HEAD` says nothing about a `GET`: some servers refuse the one and answer the other.
    fileprivate var ownKey: RequestKey? { decision.key.map { $0.isForHead ? $0.storedForHead : $0 } }
}
