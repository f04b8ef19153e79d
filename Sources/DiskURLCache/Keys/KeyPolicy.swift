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
    /// Under every policy, two different `Authorization` values never share a key, and a request whose body is a stream
    /// has no key: it is not cached. A body that is part of a key brings the request's `Content-Type`,
    /// `Content-Encoding` and `Content-Language` with it, except into a key made by a closure. A policy is a value; it
    /// can be used from any thread.
    public struct KeyPolicy: Sendable {
        /// How a request's body takes part in its key.
        enum BodyForm: Sendable {
            case bytes
            case json
            /// As `json` if the request's `Content-Type` says that the body is JSON.
            case byMediaType
        }

        /// Method + canonical URL, and of a `QUERY` the body.
        public static let standard = KeyPolicy()

        var fieldNames: [String] = []
        /// Of the methods that the app named.
        var bodyForms: [String: BodyForm] = [:]
        var droppedQueryItems: (@Sendable (String) -> Bool)?
        var sortsQueryItems = false
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

        /// Makes requests with these methods cacheable, keyed by URL and body. This is the only way to cache `POST`, so
        /// that no policy can hand one body the answer to another.
        ///
        /// Use it for queries that are sent as `POST` (GraphQL, signed APIs), never for requests that change something.
        public func includingBody(ofMethods methods: String...) -> KeyPolicy {
            including(.bytes, ofMethods: methods)
        }

        /// As ``includingBody(ofMethods:)``, but the order of members and white space in a JSON body make no difference
        /// (GraphQL). A body that is not JSON, or whose request says `no-transform`, is compared by its bytes.
        public func includingJSONBody(ofMethods methods: String...) -> KeyPolicy {
            including(.json, ofMethods: methods)
        }

        private func including(_ form: BodyForm, ofMethods methods: [String]) -> KeyPolicy {
            var policy = self
            for method in methods {
                policy.bodyForms[method.uppercased()] = form
            }
            return policy
        }

        /// Leaves query items with these names (compared as they are written in the URL) out of the key: tracking
        /// parameters, cache busters, signatures of signed URLs. The request itself is sent unchanged.
        public func droppingQueryItems(_ names: String...) -> KeyPolicy {
            let names = Set(names)
            return droppingQueryItems { names.contains($0) }
        }

        /// Leaves the query items out of the key whose name (as written in the URL) satisfies the predicate.
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

        /// A key that the app makes itself; nil for a request that must not be cached. The closure is called on any
        /// thread. Its text stays in memory; only digests are written to disk. The cache adds `Authorization` to it.
        ///
        /// The closure also decides about methods: a `POST` that gets a key is cached, so the key must include the
        /// body.
        public static func custom(_ key: @escaping @Sendable (URLRequest) -> String?) -> KeyPolicy {
            var policy = KeyPolicy()
            policy.custom = key
            return policy
        }
    }
}

extension DiskURLCache.KeyPolicy: PrintedByDescription {
    /// What the policy adds to the key of a request and takes from it, in one line.
    public var description: String {
        if custom != nil { return "a key that the app makes" }
        var parts: [String] = []
        if !fieldNames.isEmpty { parts.append("fields: \(fieldNames.joined(separator: ", "))") }
        if !bodyForms.isEmpty { parts.append("body of \(bodyForms.keys.sorted().joined(separator: ", "))") }
        if droppedQueryItems != nil { parts.append("without some query items") }
        if sortsQueryItems { parts.append("query items in order of their names") }
        return parts.isEmpty ? "method and URL" : "method and URL, " + parts.joined(separator: ", ")
    }
}
