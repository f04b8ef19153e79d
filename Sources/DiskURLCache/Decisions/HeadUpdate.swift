import Foundation

/// How the answer to a HEAD updates or invalidates a stored GET (RFC 9111 §4.3.5).
enum HeadUpdate {
    /// If a validator of the answer shows that it describes the stored response that a GET would have selected, that
    /// response is updated. A stored response that the answer contradicts is out of date and is removed, since a HEAD
    /// brings no body to replace it with. An answer without a validator shows neither, and changes nothing: not the
    /// lifetime, and no field that protects a page, such as `Content-Security-Policy`.
    static func changes(by exchange: Exchange, options: CachingOptions) -> [StoreChange] {
        guard exchange.request.method == "HEAD", exchange.status == 200,
            !exchange.request.directives.noStore,
            !ResponseDirectives(exchange.fields, targeted: options.targetedFields).noStore
        else { return [] }
        var changes: [StoreChange] = []
        var isChosen = true
        for variant in exchange.variants
        where variant.response.status == 200 && variant.response.answers(exchange.request) {
            guard describes(exchange, variant) else {
                changes.append(.remove(variant))
                continue
            }
            guard isChosen, ["ETag", "Last-Modified"].contains(where: { exchange.fields[$0] != nil }) else { continue }
            isChosen = false
            var updated = StorableFields.updated(variant.response, by: exchange, isShared: options.isShared)
            updated.vary = VaryKey(response: updated.fields, request: exchange.request)
            let reason = Storability.prohibition(ofUpdated: updated, by: exchange, options: options)
            changes.append(reason == nil ? .update(variant, updated) : .remove(variant))
        }
        return changes
    }

    /// Whether a GET would have got the stored response: each validator and the length in the answer must equal the
    /// stored ones. A field that the stored response lacks is not equal.
    private static func describes(_ exchange: Exchange, _ variant: StoredVariant) -> Bool {
        let stored = variant.response
        for name in ["ETag", "Last-Modified"] {
            guard let new = exchange.fields[name] else { continue }
            guard stored.fields[name]?.hasSameBytes(as: new) == true else { return false }
        }
        if let new = exchange.fields["Content-Length"], new != length(of: variant) { return false }
        guard let names = VaryKey.names(in: exchange.fields["Vary"]) else { return false }
        if Set(stored.vary.fields.map(\.name)).isSuperset(of: names) { return true }
        // The request that the stored response answered is not known any more, so its other fields cannot be compared.
        // But an equal strong tag shows that this request selects the same bytes.
        guard let new = exchange.fields.single("ETag").flatMap(EntityTag.init) else { return false }
        return stored.entityTag?.stronglyMatches(new) == true
    }

    /// `Content-Length` of a stored response; without one, the length of its body, unless the platform decoded the
    /// body.
    private static func length(of variant: StoredVariant) -> String? {
        if let length = variant.response.fields["Content-Length"] { return length }
        guard variant.response.method == "GET", !variant.response.fields.nameCoding else {
            return nil
        }
        return String(variant.bodyLength)
    }
}
