import Foundation

/// Partial responses: stored as what they are, completed where that is certain, never served as a whole
/// (RFC 9111 §3.3, §3.4).
enum PartialContent {
    /// The bytes that a stored 206 holds, as positions in the whole representation.
    struct Held: Sendable, Hashable {
        var range: Range<Int>
        var total: Int
    }

    /// Nil for a response that is no part.
    static func held(by candidate: Candidate) -> Held? {
        guard candidate.response.status == 206,
            let range = candidate.response.fields["Content-Range"].flatMap(ContentRange.init)
        else { return nil }
        // What the body holds counts, not what the field claims.
        let end = min(range.range.upperBound, range.range.lowerBound.addingSaturated(max(0, candidate.bodyLength)))
        return Held(range: range.range.lowerBound..<end, total: range.total)
    }

    /// A 206 is kept where it answers a range that was asked for, is fresh for a time, is no multipart and not encoded,
    /// and takes no whole response's place.
    static func isStorable(_ exchange: Exchange, lifetime: Int, replacing matching: [Int]) -> Bool {
        exchange.request.fields["Range"] != nil
            && exchange.fields["Content-Range"].flatMap(ContentRange.init) != nil
            && exchange.fields["Content-Encoding"] == nil
            && lifetime > 0
            && matching.allSatisfy { exchange.candidates[$0].response.status == 206 }
    }

    /// The request for what is missing at the end; nil where what is stored is no beginning.
    ///
    /// `If-Range` makes an origin that has something newer send the whole of it. Without a strong validator the parts
    /// are never combined; the answer then shows whether the origin gives one.
    static func completion(of candidate: Candidate, index: Int, isFresh: Bool) -> Revalidation? {
        guard let held = held(by: candidate), held.range.lowerBound == 0, !held.range.isEmpty,
            held.range.upperBound < held.total
        else { return nil }
        var fields: HeaderFields = ["Range": "bytes=\(held.range.upperBound)-"]
        if let tag = candidate.response.entityTag, !tag.isWeak {
            fields.set("If-Range", tag.text)
        } else if !isFresh {
            return nil
        }
        return Revalidation(
            index: index, fields: fields, reason: .rangeNotHeld, purpose: .complete(from: held.range.upperBound))
    }

    /// The whole response made of the stored beginning and the 206 that arrives; nil where they may not be combined:
    /// only the same strong validator says that both are parts of one representation (RFC 9111 §3.4).
    static func combined(_ exchange: Exchange, with candidate: Candidate, from start: Int) -> StoredResponse? {
        guard exchange.status == 206, let held = held(by: candidate), held.range.upperBound == start,
            let range = exchange.fields["Content-Range"].flatMap(ContentRange.init),
            range.range == start..<held.total, range.total == held.total,
            exchange.fields["Content-Encoding"] == nil,
            let stored = candidate.response.entityTag, let new = exchange.fields["ETag"].flatMap(EntityTag.init),
            stored.stronglyMatches(new)
        else { return nil }
        var whole = StorableFields.updated(candidate.response, by: exchange)
        whole.status = 200
        whole.fields.remove("Content-Range")
        whole.fields.set("Content-Length", String(held.total))
        whole.vary = VaryKey(response: whole.fields, request: exchange.request.fields)
        return whole
    }
}
