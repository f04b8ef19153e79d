import Foundation

/// A request to the origin that validates a stored response (RFC 9111 §4.3.1), or completes it (RFC 9111 §3.4).
struct Revalidation: Sendable, Hashable {
    enum Purpose: Sendable, Hashable {
        case validate
        /// The stored part ends here; the rest is asked for.
        case complete(from: Int)
    }

    /// The candidate that was selected; nil when none matched `Vary` and validators of other variants are offered.
    var index: Int?
    /// To be set on the request, in place of its own fields of the same names.
    var fields: HeaderFields
    var reason: CacheReason
    var purpose = Purpose.validate
}

extension Revalidation {
    /// Enough for the variants of one URL; a field of hundreds of tags would be refused by origins.
    private static let greatestTagCount = 16

    /// The conditional request for `request`; nil when no stored response has a validator that could be offered.
    ///
    /// The tags of all stored variants are listed (RFC 9111 §4.3.1): the origin then names the one that fits. The client's
    /// own tags stay in the list, and its own date gives way to that of the selected response; what the client asked is
    /// judged again after the answer.
    static func conditional(
        for request: RequestFacts, candidates: [Candidate], selected: Int?, reason: CacheReason
    ) -> Revalidation? {
        guard request.method == "GET" || request.method == "HEAD" else { return nil }
        var tags = offeredTags(of: candidates, for: request, selected: selected)
        let lastModified = selected.flatMap { index -> String? in
            let response = candidates[index].response
            guard isValidatable(response, for: request), response.lastModified != nil else { return nil }
            return response.fields["Last-Modified"]
        }
        var fields = HeaderFields()
        if let own = request.fields["If-None-Match"] {
            guard case .tags(let ownTags) = EntityTagCondition(own), !tags.isEmpty else { return nil }
            tags = ownTags + tags.filter { !ownTags.contains($0) }
        }
        if !tags.isEmpty { fields.set("If-None-Match", tags.map(\.text).joined(separator: ", ")) }
        if let lastModified { fields.set("If-Modified-Since", lastModified) }
        guard !fields.fields.isEmpty else { return nil }
        return Revalidation(index: selected, fields: fields, reason: reason)
    }

    /// The tags of stored successes, that of the selected response first. Without those that a 304 could not be answered with, were they
    /// what it names (several ranges were asked for, say): all would be asked for once more.
    private static func offeredTags(
        of candidates: [Candidate], for request: RequestFacts, selected: Int?
    ) -> [EntityTag] {
        let order = (selected.map { [$0] } ?? []) + candidates.indices.filter { $0 != selected }
        var tags: [EntityTag] = []
        for index in order where isValidatable(candidates[index].response, for: request) {
            guard let tag = candidates[index].response.entityTag, !tags.contains(tag),
                case .presentation = Presentation.fit(of: candidates[index], to: request)
            else { continue }
            tags.append(tag)
            if tags.count == greatestTagCount { break }
        }
        return tags
    }

    /// RFC 9110 §13.2.1: an origin judges conditions only when it would answer with a success.
    static func isValidatable(_ response: StoredResponse, for request: RequestFacts) -> Bool {
        (200...299).contains(response.status) && response.status != 206 && response.answers(method: request.method)
    }
}
