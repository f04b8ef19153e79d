import Foundation

/// What a stored response says about its age and reuse, parsed from its fields once. `Freshness` and `ReuseVerdict` need
/// nothing else of the response.
///
/// A class: an entry in memory keeps the facts from hit to hit, and one reference is cheap to copy.
final class ReuseFacts: Sendable {
    let status: Int
    let responseTime: Date
    let directives: ResponseDirectives
    /// `corrected_initial_age` (RFC 9111 §4.2.3).
    let initialAge: Int64
    /// In seconds; nil where the response says nothing.
    private let explicitLifetime: Int64?
    /// In seconds, for a shared cache; nil where the response says nothing to one.
    private let sharedLifetime: Int64?
    /// Seconds from `Last-Modified` to `Date`, for the heuristic (RFC 9111 §4.2.2). Nil without a `Last-Modified`, and where
    /// the lifetime is explicit.
    let unchangedFor: TimeInterval?

    /// In seconds; nil where the response states no lifetime.
    func explicitLifetime(inSharedCache isShared: Bool) -> Int64? {
        isShared ? sharedLifetime ?? explicitLifetime : explicitLifetime
    }

    /// - Parameter directives: those of the response, where the caller has parsed them.
    init(_ response: StoredResponse, directives known: ResponseDirectives? = nil) {
        status = response.status
        responseTime = response.responseTime
        directives = known ?? ResponseDirectives(response.fields)
        initialAge = Age.correctedInitialAge(of: response)
        explicitLifetime = Freshness.explicitLifetime(of: response, directives: directives)
        sharedLifetime = Freshness.sharedLifetime(directives)
        unchangedFor =
            explicitLifetime == nil
            ? response.lastModified.map { max(0, Freshness.date(of: response).timeIntervalSince($0)) } : nil
    }
}
