// The spelling of the reasons in `Cache-Status` and in the event log. Tools and earlier files have it, so it stays as it is.

/// A value with one spelling.
protocol Coded {
    /// Every value; of those with numbers, one with any numbers.
    static var all: [Self] { get }
    var code: String { get }
}

extension Coded {
    /// Nil for a text that spells none of them.
    init?(code: String) {
        guard let value = Self.all.first(where: { $0.code == code }) else { return nil }
        self = value
    }
}

extension CacheMissReason: Coded {
    static let all: [CacheMissReason] = [
        .notStored, .variantNotStored, .stale, .mustRevalidate, .requestDirective, .requestNoStore, .methodNotCached,
        .cachePolicy, .unsupportedRange, .rangeNotHeld, .precondition, .mismatchedAnswer,
    ]

    var code: String {
        switch self {
        case .notStored: "not-stored"
        case .variantNotStored: "variant-not-stored"
        case .stale: "stale"
        case .mustRevalidate: "no-cache"
        case .requestDirective: "request-directive"
        case .requestNoStore: "request-no-store"
        case .methodNotCached: "method"
        case .cachePolicy: "cache-policy"
        case .unsupportedRange: "unsupported-range"
        case .rangeNotHeld: "range-not-held"
        case .precondition: "precondition"
        case .mismatchedAnswer: "mismatched-answer"
        }
    }
}

extension CacheStaleReason: Coded {
    static let all: [CacheStaleReason] = [.maxStale, .staleWhileRevalidate, .staleIfError, .offline, .cachePolicy]

    var code: String {
        switch self {
        case .maxStale: "max-stale"
        case .staleWhileRevalidate: "stale-while-revalidate"
        case .staleIfError: "stale-if-error"
        case .offline: "offline"
        case .cachePolicy: "cache-policy"
        }
    }
}

extension CacheBypassReason: Coded {
    static let all: [CacheBypassReason] = [.upload, .download, .noKey, .unknownSession]

    var code: String {
        switch self {
        case .upload: "upload"
        case .download: "download"
        case .noKey: "no-key"
        case .unknownSession: "unknown-session"
        }
    }
}

extension CacheNotStoredReason: Coded {
    static let all: [CacheNotStoredReason] = [
        .noKey, .refused, .tooLarge(bytes: 0, limit: 0), .removedMeanwhile, .diskTooSlow, .diskFailed(errno: 0),
        .methodNotCached, .forOneUser, .setsCookie, .authorized, .cookie, .requestNoStore, .responseNoStore,
        .statusNotUnderstood, .statusNotCacheable, .notReusable,
        .varyAsterisk, .variesByUnseenField, .partialContent, .notModified, .malformed,
    ]

    var code: String {
        switch self {
        case .noKey: "no-key"
        case .refused: "refused"
        case .tooLarge: "too-large"
        case .removedMeanwhile: "removed-meanwhile"
        case .diskTooSlow: "disk-too-slow"
        case .diskFailed: "disk-failed"
        case .methodNotCached: "method"
        case .forOneUser: "private"
        case .setsCookie: "set-cookie"
        case .authorized: "authorization"
        case .cookie: "cookie"
        case .requestNoStore: "request-no-store"
        case .responseNoStore: "no-store"
        case .statusNotUnderstood: "status-not-understood"
        case .statusNotCacheable: "status-not-cacheable"
        case .notReusable: "not-reusable"
        case .varyAsterisk: "vary-asterisk"
        case .variesByUnseenField: "vary-unseen"
        case .partialContent: "partial-content"
        case .notModified: "not-modified"
        case .malformed: "malformed"
        }
    }
}
