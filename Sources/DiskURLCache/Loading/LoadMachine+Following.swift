import Foundation

// Another load fetches the same, and this one takes pieces: it gets what that one gets, as it arrives.

extension LoadMachine {
    /// An answer that another load fetches, and whose head this one has delivered.
    struct Following {
        var head: StoredResponse
        var reason: CacheMissReason
    }

    /// The answer that others may have while it arrives: one that the same request could be answered by from the store.
    func shareable(_ decision: ResponseDecision, now: Date) -> StoredResponse? {
        guard case .deliver(.store(let response, _), _) = decision, reuse(of: response, now: now) != nil else {
            return nil
        }
        return response
    }

    private func reuse(of response: StoredResponse, now: Date) -> Reuse? {
        let next = CacheDecision.decide(
            for: facts, candidates: [Candidate(response: response, bodyLength: 0)], policy: policy,
            options: options(for: response.fields), now: now)
        guard case .useStored(let reuse) = next, reuse.presentation == .whole else { return nil }
        return reuse
    }

    /// The body so far, for those that come later; nil where it is not kept, or in its file alone.
    var bodySoFar: Data? { arriving.isKept && !isBodyInFile ? arriving.data : nil }

    /// It is written as far as it has come, but for the piece that is being written.
    var isBodyInFile: Bool { arriving.isKept && arriving.isInFile && arriving.data.isEmpty }

    mutating func follow(_ response: StoredResponse, fetch: Fetch, now: Date) -> [Action] {
        guard settings.streams, let url = request.url, let reuse = reuse(of: response, now: now) else { return [] }
        state = .following(Following(head: response, reason: fetch.reason))
        let report = Report(
            outcome: .miss(fetch.reason), status: response.status, age: reuse.age, forwardStatus: response.status,
            collapsedInto: fetch.reason)
        return [.report(report), .deliverStoredHead(reuse.presentation.head(of: response, age: reuse.age), url)]
    }

    /// - Parameter offset: of the piece. A part of it may be here already.
    mutating func receive(_ piece: Data, offset: Int) -> [Action] {
        let known = max(0, arriving.count - offset)
        guard known < piece.count else { return [] }
        arriving.count += piece.count - known
        // As it is where all of it is new: those that follow share its memory.
        return [.deliverData(known == 0 ? piece : Data(piece.dropFirst(known)))]
    }

    /// The leader has ended. What it failed by is its own: the rest is fetched anew, where the origin still has the very same.
    mutating func leaderEnded(_ following: Following, error: Swift.Error?, now: Date) -> [Action] {
        guard let error else {
            state = .ended
            return [.finish]
        }
        guard let tag = following.head.fields["ETag"], tag.hasPrefix("\"") else {
            return fail(error, because: .network)
        }
        let delivered = arriving.count
        // Not to follow yet another one, which would start from the beginning.
        waited = following.reason
        let actions = fetch(following.reason, fields: HeaderFields(), revalidation: nil, now: now)
        guard case .fetching(var fetch) = state else { return actions }
        fetch.continued = Continued(head: following.head, count: delivered, error: error)
        state = .fetching(fetch)
        return actions
    }

    /// What was delivered before the request was sent anew.
    struct Continued {
        var head: StoredResponse
        var count: Int
        /// For the client, where the new answer is another one.
        var error: Swift.Error

        func isContinued(by head: ResponseHead) -> Bool {
            head.status == self.head.status && head.fields["ETag"] == self.head.fields["ETag"]
        }
    }
}
