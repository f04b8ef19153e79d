import Foundation

/// The facts about age and reuse in a stored response, parsed from its fields once. `Freshness` and `ReuseVerdict` need
/// nothing else of the response.
///
/// A class: an entry in memory keeps the facts from hit to hit, and one reference is cheap to copy.
package final class ReuseFacts: Sendable {
    let status: Int
    let responseTime: Date
    /// See `StoredResponse.staleSince`.
    let staleSince: Date?
    package let directives: ResponseDirectives
    /// `corrected_initial_age` with its terms (RFC 9111 §4.2.3).
    package let ageOnArrival: Age.OnArrival
    /// Nil when the response states no lifetime.
    private let explicitLifetime: Freshness.Stated?
    /// Seconds from `Last-Modified` to `Date`, for the heuristic (RFC 9111 §4.2.2). Nil without a `Last-Modified`, and
    /// when the lifetime is explicit.
    package let unchangedFor: TimeInterval?

    /// Nil when the response states no lifetime.
    package func statedLifetime(inSharedCache isShared: Bool) -> Freshness.Stated? {
        guard isShared, let seconds = directives.sharedMaxAge else { return explicitLifetime }
        return Freshness.Stated(seconds: seconds, source: .sharedMaxAge)
    }

    /// Options give every other status a lifetime, and never lengthen the life of an error: a missing image would stay
    /// missing.
    package var isError: Bool { status >= 400 }

    /// Seconds that the response may be used stale while it is refreshed (RFC 5861 §3).
    package func staleWhileRevalidate(_ options: CachingOptions) -> Int64? {
        directives.staleWhileRevalidate ?? (isError ? nil : Self.window(options.defaultStaleWhileRevalidate))
    }

    /// Seconds that the response may be used stale instead of an error (RFC 5861 §4).
    func staleIfError(_ options: CachingOptions) -> Int64? {
        directives.staleIfError ?? (isError ? nil : Self.window(options.defaultStaleIfError))
    }

    /// No longer than a directive could make it (RFC 9111 §1.2.2), so that it never holds an age that is not known.
    private static func window(_ seconds: Int64?) -> Int64? {
        seconds.map { min($0, FieldSyntax.greatestDeltaSeconds) }
    }

    /// Whether the response answers its own request again without the origin.
    func needNoValidation(_ options: CachingOptions, now: Date) -> Bool {
        !directives.noCache && Freshness(of: self, options: options, now: now).isFresh
    }

    private let response: StoredResponse

    /// Seconds from the arrival to the time that `Retry-After` names (RFC 9110 §10.2.3), as seconds or as a date.
    var retryAfter: Int64? {
        if let seconds = Self.secondsOfRetryAfter(in: response.fields) { return seconds }
        guard let value = response.fields.single("Retry-After") else { return nil }
        return HTTPDate.parse(value, reference: responseTime).map { $0.timeIntervalSince(responseTime).wholeSeconds }
    }

    /// `Retry-After` as `delay-seconds` (RFC 9110 §10.2.3): never negative. Nil for anything else, such as a date.
    static func secondsOfRetryAfter(in fields: HeaderFields) -> Int64? {
        fields.single("Retry-After").flatMap { FieldSyntax.deltaSeconds($0) }
    }

    /// The facts for a cache that looks at targeted fields first (RFC 9213). Without such a field, the same ones.
    package func governed(by options: CachingOptions) -> ReuseFacts {
        guard !options.targetedFields.isEmpty, directives.targetedField == nil else { return self }
        let directives = ResponseDirectives(response.fields, targeted: options.targetedFields)
        return directives.targetedField == nil ? self : ReuseFacts(response, directives: directives)
    }

    /// - Parameter directives: those of the response, when the caller has parsed them.
    package init(_ response: StoredResponse, directives known: ResponseDirectives? = nil) {
        self.response = response
        status = response.status
        responseTime = response.responseTime
        staleSince = response.staleSince
        directives = known ?? ResponseDirectives(response.fields)
        ageOnArrival = Age.OnArrival(of: response)
        explicitLifetime = Freshness.explicitLifetime(of: response, directives: directives)
        unchangedFor =
            explicitLifetime == nil
            ? response.lastModified.map { max(0, Freshness.date(of: response).timeIntervalSince($0)) } : nil
    }
}
