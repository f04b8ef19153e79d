import Foundation

/// What the app chose for its cache: choices that the specifications leave to a cache, and some that go beyond them.
///
/// By reference: each decision of a load has them, and nearly all loads have the same.
@dynamicMemberLookup
package struct CachingOptions: Sendable, Equatable {
    private var contents: Contents

    private final class Contents: Sendable {
        let values: Values

        init(_ values: Values) { self.values = values }
    }

    /// How long a response is fresh.
    enum Lifetime: Sendable, Equatable {
        /// The lifetime that the response states; if it states none, a guess.
        case asServed
        /// These seconds, if the response states no lifetime. They replace the guess.
        case whenMissing(seconds: Int64)
        /// These seconds, whatever the response says. `no-store` is obeyed all the same.
        case always(seconds: Int64)
        /// These seconds, unless the response has a longer lifetime. `no-store` is obeyed all the same.
        case atLeast(seconds: Int64)
    }

    package struct Values: Sendable, Equatable {
        var lifetime = Lifetime.asServed

        /// Responses that have `Last-Modified` and state no lifetime are fresh for a part of their age (RFC 9111
        /// §4.2.2).
        var usesHeuristicFreshness = true
        /// "A typical setting of this fraction might be 10%" (RFC 9111 §4.2.2).
        package var heuristicFraction = 0.1
        /// Seconds. A week: a response that has not changed for years would otherwise be reused for months without a
        /// validation.
        package var heuristicLimit: Int64 = 7 * 86_400

        /// Seconds for responses that do not send `stale-while-revalidate` (RFC 5861 §3); nil: such responses are not
        /// used stale.
        var defaultStaleWhileRevalidate: Int64?
        /// Seconds for responses that do not send `stale-if-error` (RFC 5861 §4); nil: such responses replace no error.
        var defaultStaleIfError: Int64?

        /// A stored response may answer against the server's prohibitions, when the network fails or is not to be used.
        var acceptsAnyStored = false
        /// Seconds for which an answer, whatever it says, is not asked for again; nil: HTTP decides.
        var minimumInterval: Int64?
        /// Seconds for which an error is not asked for again; nil: HTTP decides.
        var errorLifetime: Int64?

        /// The cache serves several users (RFC 9111 §1): responses for one user are not stored.
        package var isShared = false
        /// Of a shared cache: a request's `Cookie` counts as `Authorization` does, and a heuristic lifetime needs
        /// `public`. RFC 9111 demands neither, but some origins distinguish users by a cookie and forget `private`.
        var isCautious = true
        /// Fields that a shared cache looks at before `Cache-Control` (RFC 9213), in order.
        var targetedFields: [String] = []
        /// The request's `Cookie` is part of its key: no two users share it.
        var keysCookie = false

        /// No request may be sent: stored responses are served, however stale (RFC 9111 §4.2.4 "disconnected").
        /// `must-revalidate` and `no-cache` are still obeyed (RFC 9111 §5.2.2.2), unless `ReusePolicy` is `elseLoad` or
        /// `dontLoad`.
        package var isOffline = false

        /// Methods besides GET and HEAD whose responses are stored, each under its own key: QUERY, and POST when the
        /// key holds the body. All but QUERY are never revalidated, since a condition would mean something else to them
        /// (RFC 9110 §13.1.2).
        var furtherMethods: Set<String> = []
    }

    package init() { self.init(Values()) }

    init(_ values: Values) { contents = Contents(values) }

    /// A change makes a copy of all values.
    package subscript<Value>(dynamicMember member: WritableKeyPath<Values, Value>) -> Value {
        @inline(__always) get { contents.values[keyPath: member] }
        set {
            var values = contents.values
            values[keyPath: member] = newValue
            contents = Contents(values)
        }
    }

    package static func == (left: CachingOptions, right: CachingOptions) -> Bool {
        left.contents === right.contents || left.contents.values == right.contents.values
    }

    /// Responses to requests with this method may be stored.
    package mutating func allow(_ method: String) {
        if !isCacheable(method) { self.furtherMethods.insert(method) }
    }

    func isCacheable(_ method: String) -> Bool {
        method == "GET" || method == "HEAD" || self.furtherMethods.contains(method)
    }
}

/// What the request's `cachePolicy` asks for; made from `URLRequest.CachePolicy`.
package enum ReusePolicy: Sendable, Equatable {
    /// Follow HTTP.
    case useProtocol
    /// Always fetch.
    case reloadIgnoring
    /// Any stored response will do, however stale; without one, fetch.
    case elseLoad
    /// Any stored response will do, however stale; without one, fail.
    case dontLoad
    /// Ask the origin before reuse.
    case revalidate(because: DiskURLCache.Reason)

    var revalidates: Bool { if case .revalidate = self { true } else { false } }
}

extension RequestDirectives {
    /// Whether a request with these directives and this policy wants an answer of the origin, whatever is known of it.
    func wantOrigin(_ policy: ReusePolicy) -> Bool {
        policy == .reloadIgnoring || policy.revalidates || noCache || noStore || maxAge == 0
    }

    /// Whether it lets a request be sent.
    func allowNetwork(_ policy: ReusePolicy) -> Bool { policy != .dontLoad && !onlyIfCached }
}
