import Foundation

extension DiskURLCache {
    /// Which requests share a stored response: makes the key of a `URLRequest`.
    ///
    /// The standard policy keys `GET` (and `HEAD`, which may be answered from `GET`) by the canonical URL
    /// (RFC 3986 §6.2.2–6.2.3), the query kept exactly. It keys `QUERY` (RFC 10008) by URL and body; in a body whose
    /// `Content-Type` is JSON, white space and the order of members make no difference unless the request says
    /// `no-transform`. The methods below change that:
    ///
    /// ```swift
    /// // A signed API: URL + `sign` header + body, POST included.
    /// let signed = DiskURLCache.KeyPolicy.standard.includingFields("sign").includingBody(ofMethods: "POST")
    /// // Links that differ only in tracking.
    /// let links = DiskURLCache.KeyPolicy.standard.droppingQueryItems("utm_source", "utm_medium").sortingQueryItems()
    /// ```
    ///
    /// Two different `Authorization` values never share a key, unless the app itself says who the user is
    /// (``identifyingUser(by:)``, ``ignoringAuthorization()``). Under every policy, a request whose body is a stream
    /// has no key: it is not cached. A body that is part of a key brings the request's `Content-Type`,
    /// `Content-Encoding` and `Content-Language` with it, except where a closure has added the body itself. A policy is
    /// a value; it can be used from any thread.
    public struct KeyPolicy: Sendable {
        /// How a request's body takes part in its key.
        enum BodyForm: Sendable {
            case bytes
            case json
            /// As `json` if the request's `Content-Type` says that the body is JSON.
            case byMediaType
        }

        /// What tells the users apart.
        enum User: Sendable {
            case authorization
            case ignored
            case named(@Sendable (URLRequest) -> String?)
        }

        /// Method + canonical URL, and of a `QUERY` the body.
        public static let standard = KeyPolicy()

        var fieldNames: [String] = []
        /// Of the methods that the app named.
        var bodyForms: [String: BodyForm] = [:]
        var droppedQueryItems: (@Sendable (String) -> Bool)?
        var sortsQueryItems = false
        var user = User.authorization
        var custom: (@Sendable (URLRequest) -> String?)?

        /// Adds the values of request header fields to the key, such as those of a `sign` field. An absent field and an
        /// empty one make different keys. Upper and lower case, and the order of the names, make no difference.
        public func includingFields(_ names: String...) -> KeyPolicy {
            var policy = self
            policy.fieldNames = Set(fieldNames + names.map { $0.lowercased() }).sorted()
            return policy
        }

        /// How the body of a request with this method takes part in its key; nil if it does not.
        func bodyForm(of method: String) -> BodyForm? {
            bodyForms[method] ?? (method == "QUERY" ? .byMediaType : nil)
        }

        /// Makes requests with these methods cacheable, keyed by URL and body. No other policy but a closure
        /// (``custom(_:)``) caches `POST`: so none hands one body the answer to another, unless the closure does.
        ///
        /// Use it for queries that are sent as `POST` (GraphQL, signed APIs), never for requests that change something.
        /// - Parameters:
        ///   - methods: the methods, such as `POST`.
        ///   - asJSON: the order of members and white space in a JSON body make no difference (GraphQL). A body that is
        ///     not JSON, or whose request says `no-transform`, is compared by its bytes.
        public func includingBody(ofMethods methods: String..., asJSON: Bool = false) -> KeyPolicy {
            var policy = self
            for method in methods {
                policy.bodyForms[method.uppercased()] = asJSON ? .json : .bytes
            }
            return policy
        }

        /// Leaves query items with these names (compared as they are written in the URL) out of the key: tracking
        /// parameters, cache busters, signatures of signed URLs. The request itself is sent unchanged.
        public func droppingQueryItems(_ names: String...) -> KeyPolicy {
            // Some versions of Foundation escape what a URL may not have, others do not: the key has the escapes.
            let names = Set(names + names.map { String(decoding: URLCanonicalizer.escaped($0.utf8), as: UTF8.self) })
            return droppingQueryItems { names.contains($0) }
        }

        /// Leaves the query items out of the key whose name satisfies the predicate: as it is written in the URL, with
        /// brackets escaped.
        public func droppingQueryItems(where predicate: @escaping @Sendable (_ name: String) -> Bool) -> KeyPolicy {
            var policy = self
            let earlier = droppedQueryItems
            policy.droppedQueryItems = { name in predicate(name) || earlier?(name) == true }
            return policy
        }

        /// Ignores the order of query items. Items with the same name keep their order.
        public func sortingQueryItems() -> KeyPolicy {
            var policy = self
            policy.sortsQueryItems = true
            return policy
        }

        /// Names the user of a request, for credentials that change: tokens that are renewed, requests that are signed
        /// anew each time. The name takes the place of `Authorization` in the key, and where a response says
        /// `Vary: Authorization`, so that a user finds what was stored with earlier credentials.
        ///
        /// - Warning: Requests for which the closure returns the same name **share their responses, whatever their
        ///   credentials are**. Name the account, not the device, and only when the app knows that the request is sent
        ///   with this account's credentials.
        ///
        /// In a shared cache (``Configuration/isShared``) it is refused: `Authorization` stays part of the keys, and
        /// ``DiskURLCache/DiskURLCache/openingError`` says so. To remove the responses of an account, give them a tag
        /// (``Options/tags``): `removeCachedResponses(authorization:)` knows only the credentials of the last store.
        /// - Parameter name: called on any thread. The name of the account, of which only a digest is written to disk;
        ///   nil: `Authorization` is part of the key, as without this method.
        public func identifyingUser(by name: @escaping @Sendable (URLRequest) -> String?) -> KeyPolicy {
            var policy = self
            policy.user = .named(name)
            return policy
        }

        /// Leaves `Authorization` out of the key, for content that is the same for all who may see it, such as images
        /// behind URLs that are signed by a field.
        ///
        /// - Warning: **Every user of this cache gets what was stored for any other**, also after a logout, and the
        ///   server is not asked whether a user may see it. Use it by a rule, for the URLs of which that is true; for
        ///   all else ``identifyingUser(by:)``.
        ///
        /// In a shared cache (``Configuration/isShared``) it is refused: `Authorization` stays part of the keys, and
        /// ``DiskURLCache/DiskURLCache/openingError`` says so.
        public func ignoringAuthorization() -> KeyPolicy {
            var policy = self
            policy.user = .ignored
            return policy
        }

        /// A key that the app makes itself; nil for a request that must not be cached. The closure is called on any
        /// thread. Its text stays in memory; only digests are written to disk. The cache adds `Authorization` to it.
        ///
        /// The closure also decides about methods: a `POST` that gets a key is cached, so its text must include the
        /// body, or the policy (``includingBody(ofMethods:asJSON:)``). Fields and bodies that the policy includes are
        /// added to the text.
        ///
        /// On disk a response belongs to its URL, by which an unsafe request removes it (RFC 9111 §4.4). So
        /// requests with one text share a response in memory, and on disk only if their URLs are the same but for query
        /// items that the policy drops or sorts.
        public static func custom(_ key: @escaping @Sendable (URLRequest) -> String?) -> KeyPolicy {
            var policy = KeyPolicy()
            policy.custom = key
            return policy
        }
    }
}

extension DiskURLCache.KeyPolicy: PrintedByDescription {
    /// What the policy adds to the key of a request and takes from it, in one line.
    package var printedText: String {
        var parts: [String] = []
        if !fieldNames.isEmpty { parts.append("fields: \(fieldNames.joined(separator: ", "))") }
        if !bodyForms.isEmpty { parts.append("body of \(bodyForms.keys.sorted().joined(separator: ", "))") }
        if droppedQueryItems != nil { parts.append("without some query items") }
        if sortsQueryItems { parts.append("query items in order of their names") }
        switch user {
        case .authorization: break
        case .ignored: parts.append("without Authorization")
        case .named: parts.append("a user that the app names")
        }
        let start = custom == nil ? "method and URL" : "a key that the app makes"
        return ([start] + parts).joined(separator: ", ")
    }
}
