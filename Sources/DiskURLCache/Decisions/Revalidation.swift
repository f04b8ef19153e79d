import Foundation

/// A request to the origin that validates a stored response (RFC 9111 §4.3.1).
package struct Revalidation: Sendable, Equatable {
    /// The selected variant; nil if `Vary` selects none, and the validators of other variants are offered.
    package var variant: StoredVariant?
    /// Fields to set on the request; they replace fields of the same name.
    package var fields: HeaderFields
    package var reason: DiskURLCache.Reason

    /// Those that are sent: the client's and the cache's.
    var tags: [EntityTag] {
        guard case .tags(let tags)? = fields["If-None-Match"].map(EntityTagCondition.init) else { return [] }
        return tags
    }
}

extension Revalidation {
    /// Enough for the variants of a URL. Origins refuse a field with hundreds of tags.
    private static let greatestTagCount = 16

    /// The conditional request for `request`; nil when no stored response has a validator that could be offered.
    ///
    /// The tags of all stored variants are listed (RFC 9111 §4.3.1), so that the origin can confirm the one that fits.
    /// But not if the selected response has only a date.
    /// The client's own tags stay in the list; its own date is replaced by the selected response's. The client's own
    /// condition is judged again after the answer.
    static func conditional(
        for request: RequestFacts, variants: [StoredVariant], selected: StoredVariant?, reason: DiskURLCache.Reason
    ) -> Revalidation? {
        guard request.isRetrieval || request.method == "HEAD" else { return nil }
        var tags = offeredTags(of: variants, for: request, selected: selected)
        var fields = HeaderFields()
        let condition = request.wish("If-None-Match")
        // As it came: some servers write a time in their own zone, and know it again.
        if let response = selected?.response, isValidatable(response, for: request),
            let date = response.fields.single("Last-Modified"), date.contains(byte: UInt8(ascii: ":"))
        {
            fields.set("If-Modified-Since", date)
            // With a tag in the request, an origin must not judge by the date (RFC 9110 §13.1.3), and could not confirm
            // the selected response.
            if response.entityTag == nil, condition == nil { tags = [] }
        }
        if let condition {
            guard case .tags(let requestTags) = EntityTagCondition(condition), !tags.isEmpty else { return nil }
            tags = requestTags + tags.filter { !requestTags.contains($0) }
        }
        if !tags.isEmpty { fields.set("If-None-Match", tags.map(\.text).joined(separator: ", ")) }
        guard !fields.fields.isEmpty else { return nil }
        return Revalidation(variant: selected, fields: fields, reason: reason)
    }

    /// The tags of stored successes, the selected response's first. A tag is left out if a 304 that confirms it could
    /// not answer the request (for several ranges, say): the whole response would have to be fetched once more.
    private static func offeredTags(
        of variants: [StoredVariant], for request: RequestFacts, selected: StoredVariant?
    ) -> [EntityTag] {
        var tags: [EntityTag] = []
        for variant in validatable(variants, for: request, first: selected) {
            guard let tag = variant.response.entityTag, !tags.contains(tag),
                case .presentation = Presentation.fit(of: variant.response, length: variant.bodyLength, to: request)
            else { continue }
            tags.append(tag)
            if tags.count == greatestTagCount { break }
        }
        return tags
    }

    /// The variants that a 304 may confirm, the selected one first.
    static func validatable(
        _ variants: [StoredVariant], for request: RequestFacts, first selected: StoredVariant?
    ) -> [StoredVariant] {
        var order = variants.filter { $0 != selected }
        if let selected { order.insert(selected, at: 0) }
        return order.filter { isValidatable($0.response, for: request) }
    }

    /// RFC 9110 §13.2.1: an origin judges conditions only when it would answer with a success.
    package static func isValidatable(_ response: StoredResponse, for request: RequestFacts) -> Bool {
        (200...299).contains(response.status) && response.status != 206 && response.answers(method: request.method)
    }
}
