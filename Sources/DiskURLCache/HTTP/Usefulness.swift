import Foundation

/// Until when a stored response may answer without the origin's word.
enum Usefulness {
    /// The end of the freshness lifetime (RFC 9111 §4.2) plus the longer of what `stale-while-revalidate` and `stale-if-error`
    /// allow (RFC 5861). What requests ask (`max-stale`), and `isOffline`, may reuse the response later still.
    static func end(of facts: ReuseFacts, options: CachingOptions) -> Date {
        let said = facts.directives
        let (lifetime, source) = Freshness.lifetime(of: facts, options: options)
        let isOverruled = options.overrulesResponse(source)
        if said.noCache, !isOverruled { return facts.responseTime }
        var seconds = lifetime.subtractingSaturated(facts.initialAge)
        if isOverruled || !said.mustRevalidate(inSharedCache: options.isShared) {
            let windows = [
                said.staleWhileRevalidate ?? options.defaultStaleWhileRevalidate,
                said.staleIfError ?? options.defaultStaleIfError,
            ]
            seconds = seconds.addingSaturated(windows.compactMap(\.self).max() ?? 0)
        }
        return facts.responseTime.addingTimeInterval(Double(max(0, seconds)))
    }
}

extension StoredResponse {
    /// Whether the origin can be asked if it still holds, which saves its body (RFC 9110 §13.1).
    var isConfirmable: Bool {
        (method == "GET" || method == "HEAD") && (fields["ETag"].flatMap(EntityTag.init) != nil || lastModified != nil)
    }
}
