import Foundation

/// Partial responses: stored as parts, which answer ranges, and are never joined nor served as a whole (RFC 9111 §3.3).
///
/// Lengths are compared with `Content-Range`, never with `Content-Length`, which counts the encoded bytes.
enum PartialContent {
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
}
