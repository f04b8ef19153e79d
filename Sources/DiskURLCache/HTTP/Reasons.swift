// Why a cache decides as it does: the values that events carry, and the words for them. There is no second list of words.
// The raw values are the spelling in `Cache-Status` and in the event log, so they stay as they are.

/// Why a load asked the network: the store could not answer it. `description` says it in words, `rawValue` is the spelling in
/// `Cache-Status` and in the event log.
public enum CacheMissReason: String, Sendable, Hashable, CustomStringConvertible {
    /// Nothing is stored for the request (RFC 9111 §4).
    case notStored = "not-stored"
    /// No stored variant has this request's values of the fields in `Vary` (RFC 9111 §4.1).
    case variantNotStored = "variant-not-stored"
    /// What is stored is stale, and nothing allows its use (RFC 9111 §4.2.4).
    case stale
    /// The stored response says `no-cache` (RFC 9111 §5.2.2.4).
    case mustRevalidate = "no-cache"
    /// `no-cache`, `max-age`, `min-fresh` or `Pragma` of the request does not take what is stored (RFC 9111 §5.2.1).
    case requestDirective = "request-directive"
    /// The request says `no-store` (RFC 9111 §5.2.1.5).
    case requestNoStore = "request-no-store"
    /// The method is not cached (RFC 9111 §4).
    case methodNotCached = "method"
    /// `URLRequest.cachePolicy` asks for a reload.
    case reloadPolicy = "reload-policy"
    /// `URLRequest.cachePolicy` wants the origin asked.
    case revalidatePolicy = "revalidate-policy"
    /// The request asks for several ranges, or in a unit other than bytes (RFC 9110 §14.2).
    case unsupportedRange = "unsupported-range"
    /// What is stored does not hold the bytes that are asked for (RFC 9111 §3.3).
    case rangeNotHeld = "range-not-held"
    /// Only the origin can judge `If-Match`, `If-Unmodified-Since` or `If-Range` of the request (RFC 9110 §13.1).
    case precondition
    /// The origin's answer to a conditional or partial request fitted nothing that is stored (RFC 9111 §4.3.4).
    case mismatchedAnswer = "mismatched-answer"

    /// The reason in words, without a full stop.
    public var description: String {
        switch self {
        case .notStored: "nothing that fits is stored"
        case .variantNotStored: "no stored variant has this request's values of the fields in Vary"
        case .stale: "what is stored is stale, and nothing allows its use"
        case .mustRevalidate: "the stored response says no-cache"
        case .requestDirective: "the request's Cache-Control or Pragma does not take what is stored"
        case .requestNoStore: "the request says no-store"
        case .methodNotCached: "the method is not cached"
        case .reloadPolicy: "the request's cachePolicy asks for a reload"
        case .revalidatePolicy: "the request's cachePolicy wants the origin asked"
        case .unsupportedRange: "the request asks for several ranges, or in another unit than bytes"
        case .rangeNotHeld: "what is stored does not hold the bytes that are asked for"
        case .precondition: "only the origin can judge the request's own condition"
        case .mismatchedAnswer: "the origin's answer fitted nothing that is stored"
        }
    }

    /// Where the rule is written; nil for a choice of the app.
    var source: String? {
        switch self {
        case .notStored, .methodNotCached: "RFC 9111 §4"
        case .variantNotStored: "RFC 9111 §4.1"
        case .stale: "RFC 9111 §4.2.4"
        case .mustRevalidate: "RFC 9111 §5.2.2.4"
        case .requestDirective: "RFC 9111 §5.2.1"
        case .requestNoStore: "RFC 9111 §5.2.1.5"
        case .unsupportedRange: "RFC 9110 §14.2"
        case .rangeNotHeld: "RFC 9111 §3.3"
        case .precondition: "RFC 9110 §13.1"
        case .mismatchedAnswer: "RFC 9111 §4.3.4"
        case .reloadPolicy, .revalidatePolicy: nil
        }
    }
}

/// What allowed a stale response to be used (RFC 9111 §4.2.4). `description` says it in words, `rawValue` is the spelling in
/// `Cache-Status` and in the event log.
public enum CacheStaleReason: String, Sendable, Hashable, CustomStringConvertible {
    /// `max-stale` of the request (RFC 9111 §5.2.1.2).
    case maxStale = "max-stale"
    /// `stale-while-revalidate` (RFC 5861 §3). The response is refreshed in the background.
    case staleWhileRevalidate = "stale-while-revalidate"
    /// `stale-if-error` (RFC 5861 §4): the network failed, or the origin answered 500, 502, 503 or 504.
    case staleIfError = "stale-if-error"
    /// The cache is offline (``DiskURLCache/DiskURLCache/isOffline``).
    case offline
    /// `URLRequest.cachePolicy` takes what is stored, however old.
    case cachePolicy = "cache-policy"

    /// The reason in words, without a full stop.
    public var description: String {
        switch self {
        case .maxStale: "the request says max-stale"
        case .staleWhileRevalidate: "stale-while-revalidate allows it, and it is refreshed in the background"
        case .staleIfError: "stale-if-error allows it"
        case .offline: "the cache is offline"
        case .cachePolicy: "the request's cachePolicy takes it however old it is"
        }
    }

    /// Where the rule is written; nil for a choice of the app.
    var source: String? {
        switch self {
        case .maxStale: "RFC 9111 §5.2.1.2"
        case .staleWhileRevalidate: "RFC 5861 §3"
        case .staleIfError: "RFC 5861 §4"
        case .offline: "RFC 9111 §4.2.4"
        case .cachePolicy: nil
        }
    }
}

/// What in a request or its answer forbids to store the answer (RFC 9111 §3). `description` says it in words, `rawValue` is the
/// spelling in the event log.
public enum CacheStorageRefusal: String, Sendable, Hashable, CustomStringConvertible {
    /// Answers to this method are not stored (RFC 9111 §3).
    case method
    /// The response says `private`, and the cache is shared (RFC 9111 §5.2.2.7).
    case forOneUser = "private"
    /// The response sets a cookie, and the cache is shared.
    case setsCookie = "set-cookie"
    /// The request has `Authorization`, the cache is shared, and the response does not allow to share it (RFC 9111 §3.5).
    case authorized = "authorization"
    /// The request says `no-store` (RFC 9111 §5.2.1.5).
    case requestNoStore = "request-no-store"
    /// The response says `no-store` (RFC 9111 §5.2.2.5).
    case responseNoStore = "no-store"
    /// The response says `must-understand`, and this cache has no rule for its status (RFC 9111 §5.2.2.3).
    case statusNotUnderstood = "status-not-understood"
    /// The status is stored only with a lifetime of its own, or is about this one request only (RFC 9111 §3).
    case statusNotCacheable = "status-not-cacheable"
    /// Neither a lifetime nor anything that allows a guess (RFC 9111 §4.2.2): the response could never be used.
    case notReusable = "not-reusable"
    /// `Vary: *` fits no later request (RFC 9111 §4.1).
    case varyAsterisk = "vary-asterisk"
    /// A part (206) that cannot be joined with what is stored (RFC 9111 §3.3), or a body of another length than its head says.
    case partialContent = "partial-content"
    /// A 304 has no body: it only confirms what is stored (RFC 9111 §4.3.4).
    case notModified = "not-modified"
    /// A header field that cannot be written down and read again as it is, such as one with a line break (RFC 9110 §5.5).
    case malformed

    /// The reason in words, without a full stop.
    public var description: String {
        switch self {
        case .method: "answers to this method are not stored"
        case .forOneUser: "the response says private, and the cache is shared"
        case .setsCookie: "the response sets a cookie, and the cache is shared"
        case .authorized: "the request has Authorization, the cache is shared, and the response does not say public"
        case .requestNoStore: "the request says no-store"
        case .responseNoStore: "the response says no-store"
        case .statusNotUnderstood: "the response says must-understand, and this cache has no rule for its status"
        case .statusNotCacheable: "this status is stored only with a lifetime of its own"
        case .notReusable: "without a lifetime, the response could never be used"
        case .varyAsterisk: "the response says Vary: *, which fits no later request"
        case .partialContent: "it is a part (206) that cannot be joined with what is stored"
        case .notModified: "a 304 has no body: it only confirms what is stored"
        case .malformed: "a header field of the response cannot be written down and read again as it is"
        }
    }

    /// Where the rule is written.
    var source: String {
        switch self {
        case .method, .statusNotCacheable, .notReusable: "RFC 9111 §3"
        case .requestNoStore: "RFC 9111 §5.2.1.5"
        case .responseNoStore: "RFC 9111 §5.2.2.5"
        case .forOneUser: "RFC 9111 §5.2.2.7"
        case .setsCookie, .authorized: "RFC 9111 §3.5"
        case .statusNotUnderstood: "RFC 9111 §5.2.2.3"
        case .varyAsterisk: "RFC 9111 §4.1"
        case .partialContent: "RFC 9111 §3.3"
        case .notModified: "RFC 9111 §4.3.4"
        case .malformed: "RFC 9110 §5.5"
        }
    }
}
