import Foundation

/// Evaluates the client's own conditions against a stored 200 (RFC 9111 §4.3.2).
enum Preconditions {
    /// Whether the request has a condition that only the origin can evaluate.
    static func areForOrigin(in request: RequestFacts) -> Bool {
        request.wish("If-Match") != nil || request.wish("If-Unmodified-Since") != nil
    }

    /// Whether the client has the stored response already. `If-None-Match` takes precedence over `If-Modified-Since`.
    static func isNotModified(_ stored: StoredResponse, for request: RequestFacts) -> Bool {
        if let value = request.wish("If-None-Match") {
            return EntityTagCondition(value).matches(stored.entityTag)
        }
        guard let value = request.wish("If-Modified-Since"),
            let since = HTTPDate.parse(value, reference: stored.responseTime)
        else { return false }
        // Without `Last-Modified`, the response cannot have changed after it was made.
        return (stored.lastModified ?? Freshness.date(of: stored)) <= since
    }

    /// `If-Range` (RFC 9110 §13.1.5): the range applies only if the client has a part of the stored response, not of an
    /// older one.
    static func rangeApplies(to stored: StoredResponse, for request: RequestFacts) -> Bool {
        guard let value = request.wish("If-Range") else { return true }
        if let date = HTTPDate.parse(value, reference: stored.responseTime) {
            // RFC 9110 §8.8.2.2: a date is a strong validator when the response was made well after it, so that a
            // second change within the same second cannot hide.
            return stored.lastModified == date && Freshness.date(of: stored).timeIntervalSince(date) >= 60
        }
        guard let wanted = EntityTag(value), let tag = stored.entityTag else { return false }
        return tag.stronglyMatches(wanted)
    }
}
