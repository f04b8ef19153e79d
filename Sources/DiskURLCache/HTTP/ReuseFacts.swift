import Foundation

/// What a stored response says about its age and reuse, worked out of its fields once: all that `Freshness` and
/// `ReuseVerdict` need of it besides the options and the time.
///
/// A class, for an entry in memory keeps it from hit to hit: that is one reference to hold and to hand on.
final class ReuseFacts: Sendable {
    let status: Int
    let responseTime: Date
    let directives: ResponseDirectives
    /// `corrected_initial_age` (RFC 9111 §4.2.3).
    let initialAge: Int
    /// In seconds; nil where the response says nothing.
    let explicitLifetime: Int?
    /// How long what was sent had been the same by then, for the heuristic (RFC 9111 §4.2.2); nil where that is unknown,
    /// and where the lifetime is explicit.
    let unchangedFor: TimeInterval?

    /// - Parameter directives: of this very response, where they were parsed before.
    init(_ response: StoredResponse, directives known: ResponseDirectives? = nil) {
        status = response.status
        responseTime = response.responseTime
        directives = known ?? ResponseDirectives(response.fields)
        initialAge = Age.correctedInitialAge(of: response)
        explicitLifetime = Freshness.explicitLifetime(of: response, directives: directives)
        unchangedFor =
            explicitLifetime == nil
            ? response.lastModified.map { max(0, Freshness.date(of: response).timeIntervalSince($0)) } : nil
    }
}
