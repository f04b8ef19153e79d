import Foundation

// Why a cache decides as it does: the values that events carry, and the words for them. There is no second list of words. How each
// is spelled in `Cache-Status` and in the event log is in `ReasonCodes.swift`.

/// Why a load asked the network: the store could not answer it. `description` says it in words.
public enum CacheMissReason: Sendable, Hashable, CustomStringConvertible {
    /// Nothing is stored for the request (RFC 9111 §4).
    case notStored
    /// No stored variant has this request's values of the fields in `Vary` (RFC 9111 §4.1).
    case variantNotStored
    /// What is stored is stale, and nothing allows its use (RFC 9111 §4.2.4).
    case stale
    /// The stored response says `no-cache` (RFC 9111 §5.2.2.4).
    case mustRevalidate
    /// `no-cache`, `max-age`, `min-fresh` or `Pragma` of the request does not take what is stored (RFC 9111 §5.2.1).
    case requestDirective
    /// The request says `no-store` (RFC 9111 §5.2.1.5).
    case requestNoStore
    /// The method is not cached (RFC 9111 §4).
    case methodNotCached
    /// `URLRequest.cachePolicy` asks for a reload, or wants the origin asked.
    case cachePolicy
    /// The request asks for several ranges, or in a unit other than bytes (RFC 9110 §14.2).
    case unsupportedRange
    /// What is stored does not hold the bytes that are asked for (RFC 9111 §3.3).
    case rangeNotHeld
    /// Only the origin can judge `If-Match`, `If-Unmodified-Since` or `If-Range` of the request (RFC 9110 §13.1).
    case precondition
    /// The origin's answer to a conditional or partial request fitted nothing that is stored (RFC 9111 §4.3.4).
    case mismatchedAnswer

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
        case .cachePolicy: "the request's cachePolicy wants the network asked"
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
        case .cachePolicy: nil
        }
    }
}

/// What allowed a stale response to be used (RFC 9111 §4.2.4). `description` says it in words.
public enum CacheStaleReason: Sendable, Hashable, CustomStringConvertible {
    /// `max-stale` of the request (RFC 9111 §5.2.1.2).
    case maxStale
    /// `stale-while-revalidate` (RFC 5861 §3). The response is refreshed in the background.
    case staleWhileRevalidate
    /// `stale-if-error` (RFC 5861 §4): the network failed, or the origin answered 500, 502, 503 or 504.
    case staleIfError
    /// The cache is offline (``DiskURLCache/DiskURLCache/isOffline``).
    case offline
    /// `URLRequest.cachePolicy` takes what is stored, however old.
    case cachePolicy

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

/// Why the cache had no part in a load. `description` says it in words.
public enum CacheBypassReason: Sendable, Hashable, CustomStringConvertible {
    /// An upload task.
    case upload
    /// A download task.
    case download
    /// The request has no key: see ``CacheNotStoredReason/noKey``.
    case noKey
    /// Which session the task belongs to cannot be known; on Linux only.
    case unknownSession

    /// The reason in words, without a full stop.
    public var description: String {
        switch self {
        case .upload: "uploads are not cached"
        case .download: "download tasks are not cached"
        case .noKey: "the request has no key"
        case .unknownSession: "it cannot be known which session the task belongs to"
        }
    }
}

/// Why a response was not stored; `description` says it in words.
public enum CacheNotStoredReason: Sendable, Hashable, CustomStringConvertible {
    /// The request has no key: another scheme, a method that the key policy does not cache, a streamed body, or a rule with
    /// `.never`.
    case noKey
    /// Refused by `URLCache.StoragePolicy.notAllowed`, the delegate's `willCacheResponse`, the admission closure or a rule.
    case refused
    /// The body is larger than the share of the capacity that one entry may take. Both numbers are bytes.
    case tooLarge(bytes: Int, limit: Int)
    /// While this answer was under way, its URL was removed, invalidated, or replaced by a newer answer (RFC 9111 §4.4).
    case removedMeanwhile
    /// More bytes waited to be written than may wait. Memory has the response.
    case diskTooSlow
    /// The disk could not be written. `errno` is the system's error number; 0 where the folder cannot be used at all. Memory may
    /// have the response.
    case diskFailed(errno: Int32)
    /// Answers to this method are not stored (RFC 9111 §3).
    case methodNotCached
    /// The response says `private`, and the cache is shared (RFC 9111 §5.2.2.7).
    case forOneUser
    /// The response sets a cookie, and the cache is shared.
    case setsCookie
    /// The request has `Authorization`, the cache is shared, and the response does not allow to share it (RFC 9111 §3.5).
    case authorized
    /// The request has a `Cookie` that is no part of its key, the cache is shared, and the response does not allow to share it.
    case cookie
    /// The request says `no-store` (RFC 9111 §5.2.1.5).
    case requestNoStore
    /// The response says `no-store` (RFC 9111 §5.2.2.5).
    case responseNoStore
    /// The response says `must-understand`, and this cache has no rule for its status (RFC 9111 §5.2.2.3).
    case statusNotUnderstood
    /// The status is stored only with a lifetime of its own, or is about this one request only (RFC 9111 §3).
    case statusNotCacheable
    /// Neither a lifetime nor anything that allows a guess (RFC 9111 §4.2.2): the response could never be used.
    case notReusable
    /// `Vary: *` fits no later request (RFC 9111 §4.1).
    case varyAsterisk
    /// On Apple platforms: it varies by `Cookie`, `Authorization` or `Accept-Language`, which the system adds to the request after the
    /// cache has seen it, so that it might be given to another user. A session of `makeSession` stores it.
    case variesByUnseenField
    /// A part (206) that cannot be joined with what is stored (RFC 9111 §3.3), or a body of another length than its head says.
    case partialContent
    /// A 304 has no body: it only confirms what is stored (RFC 9111 §4.3.4).
    case notModified
    /// A header field that cannot be written down and read again as it is, such as one with a line break (RFC 9110 §5.5).
    case malformed

    /// The reason in words, without a full stop.
    public var description: String {
        switch self {
        case .noKey: "the request has no key"
        case .refused: "the app, its delegate or a rule refused it"
        case .tooLarge(let bytes, let limit): "its body has \(bytes) bytes, and an entry may have \(limit)"
        case .removedMeanwhile: "its URL was removed or replaced while it was loaded"
        case .diskTooSlow: "the disk did not keep up"
        case .diskFailed(0): "the cache's folder cannot be used"
        case .diskFailed(let errno): "the disk could not be written: \(String(cString: strerror(errno)))"
        case .methodNotCached: "answers to this method are not stored"
        case .forOneUser: "the response says private, and the cache is shared"
        case .setsCookie: "the response sets a cookie, and the cache is shared"
        case .authorized: "the request has Authorization, the cache is shared, and the response does not say public"
        case .cookie:
            "the request has a Cookie, the cache is shared, and the response says neither public nor Vary: Cookie"
        case .requestNoStore: "the request says no-store"
        case .responseNoStore: "the response says no-store"
        case .statusNotUnderstood: "the response says must-understand, and this cache has no rule for its status"
        case .statusNotCacheable: "this status is stored only with a lifetime of its own"
        case .notReusable: "without a lifetime, the response could never be used"
        case .varyAsterisk: "the response says Vary: *, which fits no later request"
        case .variesByUnseenField:
            "the response varies by a field that the system adds after the cache has seen the request: makeSession stores it"
        case .partialContent: "it is a part (206) that cannot be joined with what is stored"
        case .notModified: "a 304 has no body: it only confirms what is stored"
        case .malformed: "a header field of the response cannot be written down and read again as it is"
        }
    }

    /// Where the rule is written; nil for what no rule of HTTP says.
    var source: String? {
        switch self {
        case .methodNotCached, .statusNotCacheable, .notReusable: "RFC 9111 §3"
        case .requestNoStore: "RFC 9111 §5.2.1.5"
        case .responseNoStore: "RFC 9111 §5.2.2.5"
        case .forOneUser: "RFC 9111 §5.2.2.7"
        case .setsCookie, .authorized, .cookie: "RFC 9111 §3.5"
        case .statusNotUnderstood: "RFC 9111 §5.2.2.3"
        case .varyAsterisk, .variesByUnseenField: "RFC 9111 §4.1"
        case .partialContent: "RFC 9111 §3.3"
        case .notModified: "RFC 9111 §4.3.4"
        case .malformed: "RFC 9110 §5.5"
        case .removedMeanwhile: "RFC 9111 §4.4"
        case .noKey, .refused, .tooLarge, .diskTooSlow, .diskFailed: nil
        }
    }
}
