import Foundation

/// Partial responses: stored as parts, completed only when the parts certainly belong together, never served as a whole
/// (RFC 9111 §3.3, §3.4).
///
/// Lengths are compared with `Content-Range`, never with `Content-Length`, which counts the encoded bytes.
enum PartialContent {
    /// The lengths that a stored beginning and the arriving rest must have to make up the whole.
    struct Parts: Sendable, Equatable {
        var first: Int
        var rest: Int

        /// The whole body; nil if one of the parts does not have its length.
        func joined(_ first: Data, _ rest: Data) -> Data? {
            first.count == self.first && rest.count == self.rest ? first + rest : nil
        }
    }

    /// The range that a stored 206 holds. Nil for any other response, and for a 206 whose body is longer than its
    /// range: it is not known which bytes those are.
    static func held(by variant: StoredVariant) -> ContentRange? {
        guard var held = range(of: variant.response), isConsistent(variant.response, length: variant.bodyLength)
        else { return nil }
        // If the transfer was cut short, the part holds the bytes that arrived.
        held.range = held.range.prefix(variant.bodyLength)
        return held
    }

    /// Whether a body of `length` bytes can belong to the response. Any length can, except with a 206, whose
    /// `Content-Range` says how many bytes it has.
    static func isConsistent(_ response: StoredResponse, length: Int) -> Bool {
        guard response.status == 206 else { return true }
        guard let range = range(of: response) else { return false }
        return (0...range.range.count).contains(length)
    }

    private static func range(of response: StoredResponse) -> ContentRange? {
        response.status == 206 ? response.fields.single("Content-Range").flatMap(ContentRange.init) : nil
    }

    /// A 206 is stored if it answers the request's range, says which one by `Content-Range` (one with several parts
    /// does not, RFC 9110 §14.6), is fresh for a time, is not encoded, and replaces no whole response.
    static func isStorable(_ exchange: Exchange, lifetime: Int64, replacing matching: [StoredVariant]) -> Bool {
        exchange.request.wish("Range") != nil
            && exchange.fields.single("Content-Range").flatMap(ContentRange.init) != nil
            && !exchange.fields.nameCoding
            && lifetime > 0
            && matching.allSatisfy { $0.response.status == 206 }
    }

    /// In bytes. The parts of a whole are joined in memory, so a larger whole is fetched as a whole.
    static let largestWhole = 8 << 20

    /// The request for the bytes that are missing at the end; nil if the stored part does not begin at 0, or if it has
    /// a weak tag, under which parts are never combined.
    ///
    /// With `If-Range`, an origin that has a newer representation sends all of it. The rest of a fresh part without a
    /// tag is asked for, too, as the public suite wants it, although it cannot be combined either: then all is asked
    /// for.
    static func completion(of variant: StoredVariant, isFresh: Bool) -> Revalidation? {
        guard let held = held(by: variant), held.range.lowerBound == 0, !held.range.isEmpty,
            held.range.upperBound < held.total, held.total <= largestWhole
        else { return nil }
        var fields: HeaderFields = ["Range": "bytes=\(held.range.upperBound)-"]
        if let tag = variant.response.entityTag {
            if tag.isWeak { return nil }
            fields.set("If-Range", tag.text)
        } else if !isFresh {
            return nil
        }
        return Revalidation(
            variant: variant, fields: fields, reason: .rangeNotHeld, purpose: .complete(from: held.range.upperBound))
    }

    /// The whole response made of the stored beginning and the 206 that arrives, and how long each must be; nil when
    /// they may not be combined: only the same strong validator says that both are parts of one representation (RFC
    /// 9111 §3.4).
    static func combined(
        _ exchange: Exchange, with variant: StoredVariant, from start: Int, isShared: Bool
    ) -> (StoredResponse, Parts)? {
        guard exchange.status == 206, !exchange.fields.nameCoding else { return nil }
        // The new part is all that the stored one lacks.
        guard let held = held(by: variant), held.range.upperBound == start else { return nil }
        guard let range = exchange.fields.single("Content-Range").flatMap(ContentRange.init) else { return nil }
        guard range.total == held.total, range.range == start..<held.total else { return nil }
        guard let stored = variant.response.entityTag,
            let new = exchange.fields.single("ETag").flatMap(EntityTag.init), stored.stronglyMatches(new)
        else { return nil }
        var whole = StorableFields.updated(variant.response, by: exchange, isShared: isShared)
        whole.status = 200
        whole.fields.remove("Content-Range")
        // Of the first part alone (RFC 9530 §2).
        whole.fields.remove("Content-Digest")
        whole.fields.set("Content-Length", String(held.total))
        whole.vary = VaryKey(response: whole.fields, request: exchange.request)
        return (whole, Parts(first: start, rest: range.range.count))
    }
}
