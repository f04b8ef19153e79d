import Foundation

/// What a 304 to our own condition does to what is stored (RFC 9111 §4.3.4).
enum Freshening {
    /// Nil where the 304 speaks of nothing that is stored.
    static func decision(for exchange: Exchange, revalidation: Revalidation) -> ResponseDecision? {
        let named = indicesNamed(by: exchange, revalidation: revalidation)
        guard let index = named.first else { return nil }
        let matches = exchange.candidates[index].response.vary.matches(exchange.request.fields)
        var served = StorableFields.updated(exchange.candidates[index].response, by: exchange)
        // The origin chose it for this request, so it is a variant of this request's fields from now on.
        served.vary = VaryKey(response: served.fields, request: exchange.request.fields)
        let candidate = Candidate(response: served, bodyLength: exchange.candidates[index].bodyLength)
        guard case .presentation(let presentation) = Presentation.fit(of: candidate, to: exchange.request) else {
            return nil
        }
        var changes: [StoreChange] = []
        for other in named where other != index || !matches {
            if let change = change(of: other, by: exchange) { changes.append(change) }
        }
        if matches {
            changes.append(mayStay(served, exchange) ? .update(index: index, served) : .remove(index: index))
        } else if mayStay(served, exchange) {
            changes.append(.addVariant(bodyOf: index, served))
        }
        return .freshen(index: index, served, presentation, changes: changes)
    }

    /// The stored responses that the 304 is about, the one to serve first.
    private static func indicesNamed(by exchange: Exchange, revalidation: Revalidation) -> [Int] {
        let candidates = exchange.candidates
        let order = (revalidation.index.map { [$0] } ?? []) + candidates.indices.filter { $0 != revalidation.index }
        let validatable = order.filter { Revalidation.isValidatable(candidates[$0].response) }
        if let value = exchange.fields["ETag"] {
            guard let tag = EntityTag(value) else { return [] }
            let strong = validatable.filter { candidates[$0].response.entityTag?.stronglyMatches(tag) == true }
            if !strong.isEmpty { return strong }
            // A weak validator freshens one response, the most recent that it fits.
            return Array(validatable.filter { candidates[$0].response.entityTag?.weaklyMatches(tag) == true }.prefix(1))
        }
        if let value = exchange.fields["Last-Modified"],
            let modified = HTTPDate.parse(value, reference: exchange.responseTime)
        {
            return Array(validatable.filter { candidates[$0].response.lastModified == modified }.prefix(1))
        }
        // No validator in the 304, as many servers have it: certain only where a single response can be meant. The
        // client's own tags were offered too; its own date was not.
        let offered = validatable.filter { $0 == revalidation.index || candidates[$0].response.entityTag != nil }
        return offered.count == 1 && exchange.request.fields["If-None-Match"] == nil ? offered : []
    }

    /// Freshens another variant of the same strong validator. Its request is gone: should the 304 vary by other fields
    /// than before, the variant stays as it is.
    private static func change(of index: Int, by exchange: Exchange) -> StoreChange? {
        let result = StorableFields.updated(exchange.candidates[index].response, by: exchange)
        let names = VaryKey(response: result.fields, request: HeaderFields()).fields.map(\.name)
        guard names == result.vary.fields.map(\.name), mayStay(result, exchange) else { return nil }
        return .update(index: index, result)
    }

    /// A 304 can forbid to keep what it freshens.
    private static func mayStay(_ response: StoredResponse, _ exchange: Exchange) -> Bool {
        let directives = ResponseDirectives(response.fields)
        return (!directives.noStore || directives.mustUnderstand) && !response.vary.matchesNothing
            && !RequestDirectives(exchange.request.fields).noStore
            && StorableFields.areWellFormed(response.fields)
    }
}
