import Foundation

/// How a 304 to the cache's own condition changes stored responses (RFC 9111 §4.3.4).
enum Freshening {
    /// Nil when the 304 confirms no stored response.
    static func decision(
        for exchange: Exchange, revalidation: Revalidation, options: CachingOptions
    ) -> ResponseDecision? {
        guard let variant = confirmed(by: exchange, revalidation) else { return nil }
        let matches = variant.response.vary.matches(exchange.request.fields)
        var served = StorableFields.updated(variant.response, by: exchange, isShared: options.isShared)
        // The origin chose this response for the request, so it now is the variant of this request's fields.
        served.vary = VaryKey(response: served.fields, request: exchange.request)
        let fit = Presentation.fit(of: served, length: variant.bodyLength, to: exchange.request)
        guard case .presentation(let presentation) = fit else { return nil }
        // The 304 may have added `no-store` or `Vary: *`.
        let mayStay = Storability.prohibition(ofUpdated: served, by: exchange, options: options) == nil
        var changes: [StoreChange] = []
        if matches {
            changes = [mayStay ? .update(variant, served) : .remove(variant)]
        } else if mayStay {
            changes = [.addVariant(bodyOf: variant, served)]
        }
        return .freshen(variant, served, presentation, changes: changes)
    }

    /// The stored response that the 304 confirms. It may be one that `Vary` did not select, whose tag was offered: the
    /// origin says that it answers this request, too.
    ///
    /// No other one is confirmed with it, also if its tag is the same: RFC 9111 §4.3.4 updates only what the request
    /// could have selected, since for other requests the origin may have something else by now.
    private static func confirmed(by exchange: Exchange, _ revalidation: Revalidation) -> StoredVariant? {
        let validatable = Revalidation.validatable(
            exchange.variants, for: exchange.request, first: revalidation.variant)
        var digests = FieldDigests(of: exchange.request.fields)
        let selectable = validatable.filter { $0.response.vary.matches(&digests) }
        /// Those that the request could have selected come first.
        func variants(where isConfirmed: (StoredResponse) -> Bool) -> [StoredVariant] {
            (selectable + validatable.filter { !selectable.contains($0) }).filter { isConfirmed($0.response) }
        }
        let offersTags = !revalidation.tags.isEmpty
        let value = exchange.fields["ETag"]
        if let tag = exchange.fields.single("ETag").flatMap(EntityTag.init) {
            return variants { $0.entityTag?.stronglyMatches(tag) == true }.first
                ?? variants { $0.entityTag?.weaklyMatches(tag) == true }.first
        }
        // A tag that cannot be read may be any of those that were offered.
        if value != nil, offersTags { return nil }
        if let value = exchange.fields["Last-Modified"] {
            let modified = HTTPDate.parse(value, reference: exchange.responseTime)
            let same = variants {
                $0.fields["Last-Modified"] == value || modified != nil && $0.lastModified == modified
            }
            // Variants that were published together have one date: it selects none of those that `Vary` did not.
            if let first = same.first, same.count == 1 || selectable.contains(first) { return first }
            if modified != nil { return nil }
        }
        // Many servers send a 304 without a validator. It is clear which stored response it confirms only if there is
        // just one that it can mean, and no tag of the client's was sent that is not its.
        let offered = validatable.filter { $0 == revalidation.variant || offersTags && $0.response.entityTag != nil }
        guard offered.count == 1, let only = offered.first else { return nil }
        return revalidation.tags.allSatisfy { only.response.entityTag?.weaklyMatches($0) == true } ? only : nil
    }
}
