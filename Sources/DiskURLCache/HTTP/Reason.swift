import Foundation

extension DiskURLCache {
    /// Why a cache did what it did: a code for programs, a phrase for people, and often advice. Two reasons are equal
    /// if they have the same code. Events, `Cache-Status` and explanations print the same reasons. As an error in the
    /// result of ``DiskURLCache/DiskURLCache/prefetch(_:maximumConcurrency:session:progress:)`` it says why a response
    /// that arrived was not stored.
    ///
    /// ```swift no-check
    /// if report.notStoredReason == .noStore { … }
    /// ```
    public struct Reason: Swift.Error, Hashable, CodedByForm, PrintedByDescription {
        /// The spelling in `Cache-Status` and for programs, such as `no-store`. It does not change. A reason that has a
        /// constant has its name: `no-store` is ``noStore``.
        public var code: String { row.code }
        /// The reason as a phrase, without a full stop.
        package var printedText: String { row.words }
        /// A sentence that says how the origin or the app could change it; nil if neither can.
        public var advice: String? { row.advice }
        /// The phrase and the advice.
        var sentences: String { [row.words + ".", row.advice].compactMap { $0 }.joined(separator: " ") }
        /// The section of the RFC that requires it; nil if the app or this library chose it.
        package var source: String? { row.source }

        private let row: Row

        /// Compared by its code: phrases may contain different numbers or names.
        ///
        /// A class, because each decision carries a reason: copying one reference is cheap.
        package final class Row: Sendable, Hashable, Codable {
            fileprivate let code: String
            fileprivate let words: String
            fileprivate let source: String?
            fileprivate let advice: String?

            fileprivate init(_ code: String, _ words: String, _ source: String?, _ advice: String?) {
                self.code = code
                self.words = words
                self.source = source
                self.advice = advice
            }

            package static func == (left: Row, right: Row) -> Bool { left === right || left.code == right.code }

            package func hash(into hasher: inout Hasher) { hasher.combine(code) }
        }

        private init(_ code: String, _ words: String, _ source: String? = nil, advice: String? = nil) {
            row = Row(code, words, source, advice)
        }

        package var form: Row { row }

        package init(form row: Row) { self.row = row }
    }
}

// MARK: Why a request was sent

extension DiskURLCache.Reason {
    /// The cache has no response to the request.
    public static let notInCache = Self("not-in-cache", "not in the cache", "RFC 9111 §4")
    static let variantNotInCache = Self(
        "variant-not-in-cache", "not in the cache for this request's values of the fields in Vary", "RFC 9111 §4.1")
    /// The stored response has expired, and may not be used before the origin confirms it.
    public static let stale = Self("stale", "expired, so the origin has to be asked", "RFC 9111 §4.2.4")
    /// The stored response says `no-cache`: the origin has to confirm it before each use.
    static let noCache = Self(
        "no-cache", "the stored response says no-cache", "RFC 9111 §5.2.2.4",
        advice: "Without the network, the option fallback: .anyStored uses it all the same.")
    package static let requestDirective = Self(
        "request-directive", "the request's Cache-Control or Pragma does not accept the stored response",
        "RFC 9111 §5.2.1", advice: "Leave no-cache, max-age and min-fresh out of the request.")
    package static let requestNoStore = Self(
        "request-no-store", "the request says no-store", "RFC 9111 §5.2.1.5",
        advice: "Leave no-store out of the request's Cache-Control.")
    /// `URLRequest.cachePolicy` asks for a reload or for a revalidation.
    public static let cachePolicy = Self(
        "cache-policy", "the request's cachePolicy requires the network",
        advice: "Leave the request's cachePolicy at .useProtocolCachePolicy.")
    /// `DiskURLCache.answers(for:)`: the second answer.
    static let newest = Self("newest", "the app asks for the newest response (answers(for:))")
    static let unsupportedRange = Self(
        "unsupported-range", "the request asks for several ranges, or uses a unit other than bytes", "RFC 9110 §14.2")
    static let rangeNotHeld = Self(
        "range-not-held", "the stored response does not contain the requested bytes", "RFC 9111 §3.3")
    package static let precondition = Self(
        "precondition", "the request has a condition that only the origin can evaluate", "RFC 9110 §13.1")
    static let mismatchedAnswer = Self(
        "mismatched-answer", "the origin's 304 matches no stored response", "RFC 9111 §4.3.4")
}

// MARK: Why a stale response was used

extension DiskURLCache.Reason {
    static let maxStale = Self("max-stale", "the request says max-stale", "RFC 9111 §5.2.1.2")
    /// `stale-while-revalidate`. The response is refreshed in the background.
    static let staleWhileRevalidate = Self(
        "stale-while-revalidate", "allowed by stale-while-revalidate, and refreshed in the background", "RFC 5861 §3")
    /// `stale-if-error`: the network failed, or the origin answered with a 5xx.
    public static let staleIfError = Self("stale-if-error", "allowed by stale-if-error", "RFC 5861 §4")
    /// ``DiskURLCache/DiskURLCache/isOffline`` is true.
    static let offline = Self("offline", "the cache is offline", "RFC 9111 §4.2.4")
    static let anyAge = Self("any-age", "the app accepts any age (by cachePolicy, answers(for:) or within:)")
    /// ``Options/Fallback/anyStored``: used against the server's word, since the network failed or is not to be used.
    public static let anyStored = Self("any-stored", "the app accepts any stored response instead of none")
    /// - Parameter prohibition: what HTTP says against it.
    static func anyStored(against prohibition: DiskURLCache.Reason) -> Self {
        let word: String? =
            switch prohibition {
            case .noCache: "no-cache"
            case .mustRevalidate: "must-revalidate, proxy-revalidate or s-maxage"
            default: nil
            }
        guard let word else { return .anyStored }
        return Self("any-stored", "the app accepts any stored response instead of none, against the server's \(word)")
    }
    /// ``Options/minimumInterval``: the URL was asked a short while ago.
    public static let minimumInterval = Self(
        "minimum-interval", "the app wants the URL to be asked less often (minimumInterval)")
    /// ``Options/errorLifetime``: the URL answered with an error a short while ago.
    static let errorLifetime = Self(
        "error-lifetime", "the app wants an error to be asked for less often (errorLifetime)")
}

// MARK: Why no stored response replaces an error

extension DiskURLCache.Reason {
    /// `must-revalidate`, `proxy-revalidate` or `s-maxage` forbids the use of the stale response.
    static let mustRevalidate = Self(
        "must-revalidate", "must-revalidate, proxy-revalidate or s-maxage forbids stale use",
        "RFC 9111 §5.2.2.2",
        advice: "Without the network, the option fallback: .anyStored uses it all the same.")
    static let noStaleIfError = Self(
        "no-stale-if-error", "neither the response nor a setting has stale-if-error", "RFC 5861 §4",
        advice:
            "The origin could send stale-if-error=…; the app can set staleIfError in a rule or in the configuration.")
    static let staleIfErrorOver = Self(
        "stale-if-error-over", "it has been stale for longer than stale-if-error allows", "RFC 5861 §4")
    static let storedError = Self("stored-error", "the stored response is an error itself", "RFC 5861 §4")
}

// MARK: Why the cache was not used

extension DiskURLCache.Reason {
    static let upload = Self("upload", "upload tasks are not cached")
    static let download = Self("download", "download tasks are not cached")
    package static let noKey = Self("no-key", "the request has no key")
    static let notHTTP = Self("not-http", "only http and https URLs with a host are cached", "RFC 9111 §1")
    static let unusualHost = Self(
        "unusual-host", "its host or port is not one that every client reads alike", "RFC 3986 §3.2.2",
        advice: "Write a name (an international one unescaped), four decimal numbers, or an IPv6 address.")
    static let dotSegments = Self(
        "dot-segments",
        "its path has a segment . or ..: some clients remove it, so the response could belong to a different URL",
        "RFC 3986 §5.2.4", advice: "Request the path without such segments.")
    static let streamedBody = Self(
        "streamed-body", "its body is a stream, so its bytes are not known in advance",
        advice: "Give the body as data (httpBody).")
    static let bodyNotKeyed = Self(
        "body-not-keyed", "it is a GET or HEAD with a body, and the key policy does not include the body",
        "RFC 9110 §9.3.1",
        advice: "Include the body in the key: DiskURLCache.KeyPolicy.includingBody(ofMethods:asJSON:).")
    /// Only `GET`, `HEAD` and `QUERY` are cached, and the methods of ``KeyPolicy/includingBody(ofMethods:asJSON:)``.
    static let methodNotCached = Self(
        "method-not-cached", "only a GET or QUERY is stored, and another method if the key policy includes its body",
        "RFC 9111 §2",
        advice:
            "If a request of another method only reads, use DiskURLCache.KeyPolicy.includingBody(ofMethods:asJSON:); the response needs a lifetime."
    )
    static let queryWithoutContent = Self(
        "query-without-content", "it is a QUERY without a body, or its body is not known", "RFC 10008 §2",
        advice: "Give the query as the request's body (httpBody).")
    static let keyPolicy = Self("key-policy", "the key policy makes no key for it, or no key policy has that name")
    /// A rule or the request's options say `.never`; the words say which.
    public static let never = Self("never", "the request's options say storage: .never")
    /// For a place where the pattern of a rule must not be, since it may contain a URL.
    package static let neverByOptions = Self("never", "a rule or the request's options say storage: .never")
    /// - Parameters:
    ///   - index: the rule's position in `Configuration.rules`.
    ///   - match: what the rule applies to.
    ///   - problem: why nothing can match the rule; nil for a valid rule.
    static func never(byRule index: Int, _ match: String, problem: String?) -> Self {
        guard let problem else { return Self("never", "rule \(index) (\(match)) says storage: .never") }
        return Self(
            "never", "rule \(index) matches nothing, and keeps every response out of the cache to be safe",
            advice: "Mend the rule: \(problem)")
    }
}

// MARK: Why stored responses were removed

extension DiskURLCache.Reason {
    package static func groupInvalidation(names: [String]) -> Self {
        Self(
            "group-invalidation", "the answer named the groups \(names.joined(separator: ", "))", "RFC 9875 §3")
    }
    package static let clearSiteData = Self(
        "clear-site-data", "the answer told the cache to forget its host", "Clear Site Data §3.1")
}

// MARK: Why a response was not stored

extension DiskURLCache.Reason {
    /// Refused by `URLCache.StoragePolicy.notAllowed`, the delegate's `willCacheResponse` or
    /// `Configuration.willCacheResponse`; the words say which.
    public static let refused = Self("refused", "its storage policy is .notAllowed")
    static let refusedByDelegate = Self(
        "refused", "the delegate refused it in urlSession(_:dataTask:willCacheResponse:completionHandler:)")
    static let refusedByApp = Self("refused", "Configuration.willCacheResponse refused it")
    static let refusedUnasked = Self(
        "refused", "Configuration.willCacheResponse is not asked about a download that went on")
    static let refusedOfTwoURLs = Self(
        "refused", "the task was redirected, and the response belongs to neither of its URLs")
    static let credentials = Self(
        "credentials", "the origin asked for credentials, which are not part of the key",
        advice: "Send them in the request's Authorization field: it is part of every key.")
    /// The body is larger than an entry may be; the words have both numbers.
    public static let tooLarge = tooLarge(bytes: 0, limit: 0)
    package static func tooLarge(bytes: Int, limit: Int) -> Self {
        Self(
            "too-large",
            limit > 0
                ? "its body has \(bytes) bytes, and the largest that is stored has \(limit)"
                : "with these settings no body is stored",
            advice: "maximumEntryFraction and the capacities set the limit.")
    }
    /// While this answer was on its way, its URL was removed, invalidated, or replaced by a newer answer.
    static let removedMeanwhile = Self(
        "removed-meanwhile", "its URL was removed or replaced during the load", "RFC 9111 §4.4")
    /// The disk could not be written, or the cache's folder cannot be used at all; the words say why. Memory may have
    /// the response.
    public static let diskFailed = diskFailed(errno: 0)
    /// - Parameter errno: the system's error number; 0 if the folder cannot be used at all.
    static func diskFailed(errno: Int32) -> Self {
        Self(
            "disk-failed",
            errno == 0
                ? "the cache's folder cannot be used"
                : "the disk could not be written: \(String(cString: strerror(errno)))",
            advice: "DiskURLCache.openingError and the events of kind .problem say more.")
    }
    /// Not about the response, which is stored.
    static func userInfo(keys: [String]) -> Self {
        Self(
            "user-info", "its userInfo values of \(keys.joined(separator: ", ")) are kept in memory only",
            advice: "Use property-list types: numbers, texts, dates, data, and arrays and dictionaries of these.")
    }
    /// The body contradicts a digest that the response states (`Configuration.wrongDigest`).
    public static let wrongDigest = wrongDigest(in: "a digest of the response")
    /// - Parameter field: with the algorithm.
    static func wrongDigest(in field: String) -> Self {
        Self("wrong-digest", "the body does not match \(field)", "RFC 9530 §3")
    }
    /// The response says `private`, and the cache is shared.
    static let `private` = Self(
        "private", "the response says private, and the cache is shared", "RFC 9111 §5.2.2.7",
        advice:
            "The origin could leave private out, if every user may have it; a cache for one user (isShared = false) stores it."
    )
    /// The response sets a cookie, and the cache is shared.
    static let setCookie = Self(
        "set-cookie", "the response sets a cookie, and the cache is shared", "RFC 9111 §3.5",
        advice:
            "The origin could set the cookie in another response; a cache for one user (isShared = false) stores it without the cookie."
    )
    /// The request has `Authorization`, the cache is shared, and the response does not say `public`.
    static let authorization = Self(
        "authorization", "the request has Authorization, the cache is shared, and the response does not say public",
        "RFC 9111 §3.5", advice: "The origin could say public, must-revalidate or s-maxage, if every user may have it.")
    static let cookie = Self(
        "cookie",
        "the request has a Cookie, the cache is shared, and the response says neither public nor Vary: Cookie",
        "RFC 9111 §3.5",
        advice:
            "The origin could say public or Vary: Cookie; the app could key the field, or leave Cookie out of the request."
    )
    /// The response says `no-store`.
    public static let noStore = Self(
        "no-store", "the response says no-store", "RFC 9111 §5.2.2.5",
        advice: "Only the origin can change that: with no-cache instead of no-store, it is stored and validated.")
    static let statusNotUnderstood = Self(
        "status-not-understood", "the response says must-understand, and this cache has no rule for its status",
        "RFC 9111 §5.2.2.3")
    static let statusNotCacheable = Self(
        "status-not-cacheable", "a response with its status is stored only if it states a lifetime", "RFC 9111 §3",
        advice: "The origin could send max-age with it.")
    static let aboutRequestOnly = Self(
        "about-request-only", "its status concerns only the credentials, the condition or the range of this request",
        "RFC 9111 §3")
    static let aboutSending = Self(
        "about-sending", "its status concerns how the request was sent: how often, how large, by which connection",
        "RFC 6585")
    /// An error or a redirection without a lifetime.
    static let notReusable = Self(
        "not-reusable", "it has no lifetime, so it could never be used from the cache", "RFC 9111 §3",
        advice:
            "The origin could send Cache-Control: max-age=…; the app can set, in a rule or in cacheOptions, lifetime: .whenMissing(…) for a redirection, and errorLifetime for an error."
    )
    /// The response says `Vary: *`.
    static let varyAsterisk = Self(
        "vary-asterisk", "the response says Vary: *, which matches no later request", "RFC 9111 §4.1",
        advice: "The origin could name the request fields on which the response depends.")
    /// On Apple platforms: the system adds `Cookie`, `Authorization` and `Accept-Language` after the cache has seen the
    /// request, so the response might be given to another user.
    static let varyUnseen = Self(
        "vary-unseen", "the response varies by a field that the system adds after the cache has seen the request",
        "RFC 9111 §4.1", advice: "A session of makeSession stores it.")
    static let partialContent = Self(
        "partial-content", "it is a 206 that does not continue the stored part", "RFC 9111 §3.3")
    /// - Parameter stated: the length that the response states, or that its status allows.
    static func wrongLength(_ length: Int, stated: Int) -> Self {
        Self(
            "wrong-length", "its body has \(length) bytes, and its head says \(stated)", "RFC 9111 §3.3",
            advice: length < stated
                ? "The connection may have ended too early: ask again." : "A 204 or 205 has no body: the server errs.")
    }
    static let notModified = Self(
        "not-modified", "a 304 has no body: it only confirms a stored response", "RFC 9111 §4.3.4")
    static let malformed = Self(
        "malformed", "a header field of the response has characters that cannot be stored", "RFC 9110 §5.5")
}
