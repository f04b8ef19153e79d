import Foundation

/// How a 304 to the cache's own condition changes stored responses (RFC 9111 §4.3.4).
enum Freshening {
    /// Nil when the 304 confirms no stored response.
    static func decision(
        for exchange: Exchange, revalidation: Revalidation, options: CachingOptions
    ) -> ResponseDecision? {
        let named = named(by: exchange, revalidation: revalidation)
        guard let variant = named.first else { return nil }
        let matches = variant.response.vary.matches(exchange.request.fields)
        var served = StorableFields.updated(variant.response, by: exchange, isShared: options.isShared)
        // The origin chose this response for the request, so it now is the variant of this request's fields.
        served.vary = VaryKey(response: served.fields, request: exchange.request)
        let fit = Presentation.fit(of: served, length: variant.bodyLength, to: exchange.request)
        guard case .presentation(let presentation) = fit else { return nil }
        // The 304 may have added `no-store` or `Vary: *`.
        let mayStay = Storability.prohibition(ofUpdated: served, by: exchange, options: options) == nil
        var changes = named.filter { $0 != variant || !matches }.compactMap { change(of: $0, by: exchange, options) }
        if matches {
            changes.append(mayStay ? .update(variant, served) : .remove(variant))
        } else if mayStay {
            // Comes first, since it needs the body of an entry that a later update may replace.
            changes.insert(.addVariant(bodyOf: variant, served), at: 0)
        }
        return .freshen(variant, served, presentation, changes: changes)
    }

    /// The stored responses that the 304 confirms, beginning with the response to serve.
    private static func named(by exchange: Exchange, revalidation: Revalidation) -> [StoredVariant] {
        let validatable = Revalidation.validatable(
            exchange.variants, for: exchange.request, first: revalidation.variant)
        let offersTags = revalidation.fields["If-None-Match"] != nil
        let value = exchange.fields["ETag"]
        if let tag = value.flatMap(EntityTag.init) {
            let strong = validatable.filter { $0.response.entityTag?.stronglyMatches(tag) == true }
            if !strong.isEmpty { return strong }
            // A weak validator freshens one response only: the most recent match.
            let weak = validatable.first { $0.response.entityTag?.weaklyMatches(tag) == true }
            return weak.map { [$0] } ?? []
        }
        // A tag that cannot be read may be any of those that were offered.
        if value != nil, offersTags { return [] }
        if let value = exchange.fields["Last-Modified"] {
            if let same = validatable.first(where: { $0.response.fields["Last-Modified"] == value }) {
                return [same]
            }
            if let modified = HTTPDate.parse(value, reference: exchange.responseTime) {
                let same = validatable.first { $0.response.lastModified == modified }
                return same.map { [$0] } ?? []
            }
        }
        // Many servers send a 304 without a validator. It is clear which stored response it confirms only if there is
        // just one that it can mean. The client's own tags were sent as well; its own date was not.
        let offered = validatable.filter { $0 == revalidation.variant || offersTags && $0.response.entityTag != nil }
        return offered.count == 1 && exchange.request.wish("If-None-Match") == nil ? offered : []
    }

    /// Freshens a further variant with the same strong validator. The request that it answered is not known any more;
    /// so if the 304 has a different `Vary`, the variant is left unchanged.
    private static func change(
        of variant: StoredVariant, by exchange: Exchange, _ options: CachingOptions
    ) -> StoreChange? {
        let result = StorableFields.updated(variant.response, by: exchange, isShared: options.isShared)
        guard VaryKey.names(in: result.fields["Vary"]) == result.vary.fields.map(\.name),
            Storability.prohibition(ofUpdated: result, by: exchange, options: options) == nil
        else { return nil }
        return .update(variant, result)
    }
}
