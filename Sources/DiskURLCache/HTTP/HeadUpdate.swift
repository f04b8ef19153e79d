import Foundation

/// What the answer to a HEAD tells about a stored GET (RFC 9111 §4.3.5).
enum HeadUpdate {
    static func changes(by exchange: Exchange) -> [StoreChange] {
        guard exchange.request.method == "HEAD", exchange.status == 200,
            !RequestDirectives(exchange.request.fields).noStore, !ResponseDirectives(exchange.fields).noStore,
            let index = exchange.candidates.indices.first(where: {
                let response = exchange.candidates[$0].response
                return response.status == 200 && response.method == "GET"
                    && response.vary.matches(exchange.request.fields)
            })
        else { return [] }
        let stored = exchange.candidates[index].response
        // Another length or validator: the stored one is out of date. There is no body to put in its place.
        let describing = ["Content-Length", "ETag", "Last-Modified"]
        let differs = describing.contains { name in
            guard let new = exchange.fields[name], let old = stored.fields[name] else { return false }
            return new != old
        }
        if differs { return [.remove(index: index)] }
        var updated = StorableFields.updated(stored, by: exchange)
        updated.vary = VaryKey(response: updated.fields, request: exchange.request.fields)
        guard !updated.vary.matchesNothing, StorableFields.areWellFormed(updated.fields) else { return [] }
        return [.update(index: index, updated)]
    }
}
