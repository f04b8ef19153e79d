/// The `Cache-Status` field (RFC 9211): how one request was handled, in one list member.
struct CacheStatus: Sendable, Equatable {
    static let fieldName = "Cache-Status"

    /// The name of the cache, the member's identifier.
    var cacheName: String
    /// True when the answer came from the store and no request was sent. The member then has nothing about forwarding,
    /// whatever the other properties hold (RFC 9211 §2.2).
    var hit = false
    /// Why the request was sent (RFC 9211 §2.2).
    var forward: String?
    /// The status that the origin sent, when it differs from the one delivered.
    var forwardStatus: Int?
    /// True only once the answer is in the store: not for one that is still arriving (RFC 9211 §2.5).
    var stored = false
    var collapsed = false
    /// Seconds of freshness left; negative when stale.
    var timeToLive: Int64?
    var detail: String?

    init(cacheName: String) {
        self.cacheName = cacheName
    }

    /// The member as text for the field.
    var fieldValue: String {
        var parts = [StructuredField.text(ofTokenOrString: cacheName)]
        if hit {
            parts.append("hit")
        } else {
            if let forward { parts.append("fwd=\(forward)") }
            if let forwardStatus { parts.append("fwd-status=\(forwardStatus)") }
        }
        if let timeToLive { parts.append("ttl=\(StructuredField.text(ofInteger: timeToLive))") }
        if !hit, stored { parts.append("stored") }
        if !hit, collapsed { parts.append("collapsed") }
        if let detail { parts.append("detail=\(StructuredField.text(ofTokenOrString: detail))") }
        return parts.joined(separator: "; ")
    }

    /// Adds this cache's member behind those of the caches on the way (RFC 9211 §2: nearest to the user last).
    static func append(_ member: String, to fields: inout HeaderFields) {
        fields.set(fieldName, [fields[fieldName], member].compactMap { $0 }.joined(separator: ", "))
    }
}

extension DiskURLCache.Reason {
    /// RFC 9211 §2.2.
    var forward: String {
        switch self {
        case .notInCache: "uri-miss"
        case .variantNotInCache: "vary-miss"
        case .stale, .noCache, .mismatchedAnswer: "stale"
        case .methodNotCached: "method"
        case .unsupportedRange: "bypass"
        case .rangeNotHeld: "partial"
        default: "request"
        }
    }

    /// The code, unless `forward` implies it.
    var detail: String? {
        switch self {
        case .notInCache, .variantNotInCache, .stale, .methodNotCached: nil
        default: code
        }
    }
}
