import Foundation

/// The `Cache-Status` field (RFC 9211): how one request was handled, in one list member.
struct CacheStatus: Sendable, Hashable {
    /// The name of the cache, the member's identifier.
    var cacheName: String
    /// True when the answer came from the store without the origin being asked.
    var hit = false
    var forward: ForwardReason?
    /// The status that the origin sent, where it differs from the one delivered.
    var forwardStatus: Int?
    var stored = false
    var collapsed = false
    /// Seconds of freshness left; negative when stale.
    var timeToLive: Int?
    var detail: String?

    enum ForwardReason: String, Sendable, Hashable {
        case bypass
        case method
        case uriMiss = "uri-miss"
        case varyMiss = "vary-miss"
        case miss
        case request
        case stale
        case partial
    }

    /// The member as it goes into the field.
    var fieldValue: String { cacheName }
}

extension FetchReason {
    var forward: CacheStatus.ForwardReason { .miss }
}
