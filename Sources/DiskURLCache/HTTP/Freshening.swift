import Foundation

/// How a 304 to the cache's own condition changes stored responses (RFC 9111 §4.3.4).
enum Freshening {
    /// Nil when the 304 confirms no stored response.
    static func decision(
        for exchange: Exchange, revalidation: Revalidation, options: CachingOptions
    ) -> ResponseDecision? {
        let named = indicesNamed(by: exchange, revalidation: revalidation)
        guard let index = named.first else { return nil }
        let matches = exchange.candidates[index].response.vary.matches(exchange.request.fields)
        var served = StorableFields.updated(
            exchange.candidates[index].response, by: exchange, isShared: options.isShared)
        // The origin chose this response for the request, so it now is the variant of this request's fields.
        served.vary = VaryKey(response: served.fields, request: exchange.request)
        let candidate = Candidate(response: served, bodyLength: exchange.candidates[index].bodyLength)
        guard case .presentation(let presentation) = Presentation.fit(of: candidate, to: exchange.request) else {
            return nil
        }
        // The 304 may have added `no-store` or `Vary: *`.
        let mayStay = Storability.prohibition(ofUpdated: served, by: exchange, options: options) == nil
        var changes = named.filter { $0 != index || !matches }.compactMap { change(of: $0, by: exchange, options) }
        if matches {
            changes.append(mayStay ? .update(index: index, served) : .remove(index: index))
        } else if mayStay {
            // Comes first, since it needs the body of an entry that a later update may replace.
            changes.insert(.addVariant(bodyOf: index, served), at: 0)
        }
        return .freshen(index: index, served, presentation, changes: changes)
    }

    /// The stored responses that the 304 confirms, beginning with the response to serve.
    private static func indicesNamed(by exchange: Exchange, revalidation: Revalidation) -> [Int] {
        let candidates = exchange.candidates
        let validatable = Revalidation.validatable(candidates, for: exchange.request, first: revalidation.index)
        if let value = exchange.fields["ETag"] {
            guard let tag = EntityTag(value) else { return [] }
            let strong = validatable.filter { candidates[$0].response.entityTag?.stronglyMatches(tag) == true }
            if !strong.isEmpty { return strong }
            // A weak validator freshens one response only: the most recent match.
            let weak = validatable.first { candidates[$0].response.entityTag?.weaklyMatches(tag) == true }
            return weak.map { [$0] } ?? []
        }
        if let value = exchange.fields["Last-Modified"] {
            if let same = validatable.first(where: { candidates[$0].response.fields["Last-Modified"] == value }) {
                return [same]
            }
            if let modified = HTTPDate.parse(value, reference: exchange.responseTime) {
                let same = validatable.first { candidates[$0].response.lastModified == modified }
                return same.map { [$0] } ?? []
            }
        }
        // Many servers send a 304 without a validator. It is clear which stored response it confirms only if there is
        // just one that it can mean. The client's own tags were sent as well; its own date was not.
        let offered = validatable.filter { $0 == revalidation.index || candidates[$0].response.entityTag != nil }
        return offered.count == 1 && exchange.request.wish("If-None-Match") == nil ? offered : []
    }

    /// Freshens a further variant with the same strong validator. The request that it answered is not known any more;
    /// so if the 304 has a different `Vary`, the variant is left unchanged.
    private static func change(of index: Int, by exchange: Exchange, _ options: CachingOptions) -> StoreChange? {
        let result = StorableFields.updated(
            exchange.candidates[index].response, by: exchange, isShared: options.isShared)
        guard VaryKey.names(in: result.fields["Vary"]) == result.vary.fields.map(\.name),
            Storability.prohibition(ofUpdated: result, by: exchange, options: options) == nil
        else { return nil }
        return .update(index: index, result)
    }
}
