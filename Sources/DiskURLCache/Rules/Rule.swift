import Foundation

extension DiskURLCache {
    /// Options for all requests or responses that match. ``Options`` says which setting wins if several apply.
    ///
    /// ```swift
    /// configuration.rules = [
    ///     DiskURLCache.Rule(for: .contentType("image/*"), lifetime: .whenMissing(.days(7))),
    ///     DiskURLCache.Rule(for: .path("/me", host: "api.example.com"), storage: .memoryOnly),
    /// ]
    /// ```
    public struct Rule: Sendable {
        /// The requests or responses to which a rule applies. Rules compare the canonical URL, as keys do: a different
        /// spelling of the host, the port or the percent-encoding, or a user name in the URL, makes no difference.
        public struct Match: Sendable {
            enum Kind: Sendable {
                case all
                case url(URLPattern)
                case path(String, host: String?)
                case host(String)
                case contentType(String)
                case request(@Sendable (URLRequest) -> Bool)
                case json(@Sendable (_ body: [String: Any], URLRequest) -> Bool)
                /// A pattern that cannot match anything, and why.
                case nothing(String)
            }

            let kind: Kind

            private init(_ kind: Kind) { self.kind = kind }

            private init(_ kind: () throws(URLPattern.Problem) -> Kind) {
                do throws(URLPattern.Problem) {
                    self.init(try kind())
                } catch {
                    self.init(.nothing(error.text))
                }
            }

            /// Every request.
            public static let all = Match(.all)

            /// The whole URL without its fragment. `*` stands for any number of any characters. The pattern begins with
            /// a scheme or a `*`.
            public static func url(_ pattern: String) -> Match {
                Match { () throws(URLPattern.Problem) in .url(try URLPattern(pattern)) }
            }

            /// A path and the paths below it: `/me` matches `/me`, `/me/settings` and `/me;v=1`, but not `/menu`.
            /// - Parameters:
            ///   - path: begins with `/`.
            ///   - host: the host, its subdomains not included; nil for every host.
            public static func path(_ path: String, host: String? = nil) -> Match {
                Match { () throws(URLPattern.Problem) in
                    guard path.hasPrefix("/"), !path.contains(where: { "*?#".contains($0) }) else {
                        throw .init(
                            "\(path.quotedWithoutCredentials) is not a path; write it as \"/me\", and patterns as Match.url."
                        )
                    }
                    return .path(try URLPattern.canonicalTail(path[...]), host: try host.map(canonicalHost))
                }
            }

            /// The host and its subdomains.
            public static func host(_ name: String) -> Match {
                Match { () throws(URLPattern.Problem) in .host(try canonicalHost(name)) }
            }

            private static func canonicalHost(_ name: String) throws(URLPattern.Problem) -> String {
                guard let host = URLCanonicalizer.host(name) else {
                    throw .init(
                        "\(name.quotedWithoutCredentials) is not a host; give the name alone, without scheme, port and path,"
                            + " as in \"example.com\".")
                }
                return host
            }

            /// The response's media type without parameters, such as `image/*`. The rule applies once there is a
            /// response, so it cannot change the key.
            public static func contentType(_ pattern: String) -> Match {
                let parts = pattern.split(separator: "/", omittingEmptySubsequences: false)
                if pattern.contains(";") {
                    return Match(
                        .nothing("media types are compared without parameters; leave out what follows the \";\"."))
                }
                guard parts.count == 2, parts.allSatisfy({ !$0.isEmpty && !$0.contains(" ") }) else {
                    return Match(
                        .nothing(
                            "\(pattern.quotedWithoutCredentials) is not a media type; write it as \"image/*\" or"
                                + " \"application/json\".")
                    )
                }
                return Match(.contentType(pattern.lowercased()))
            }

            /// Requests for which the closure returns true. It is called on any thread, at least once for each request
            /// of a load and each call of a method that takes a request, so it must give equal requests the same
            /// answer. It gets the request as the app made it: its URL is not in canonical form.
            public static func request(_ predicate: @escaping @Sendable (URLRequest) -> Bool) -> Match {
                Match(.request(predicate))
            }

            /// Requests whose body is a JSON object for which the closure returns true, such as operations of GraphQL:
            /// `.json { body, _ in body["operationName"] as? String == "Feed" }`. The body is parsed once for all
            /// rules, and only if there is such a rule. The closure is called as that of ``request(_:)``. If a
            /// JSON body cannot be parsed, such as one nested deeper than 512, the rule applies without being asked if
            /// it keeps responses off the disk or out of the cache.
            public static func json(
                _ predicate: @escaping @Sendable (_ body: [String: Any], _ request: URLRequest) -> Bool
            ) -> Match {
                Match(.json(predicate))
            }
        }

        let match: Match
        let cacheOptions: Options

        /// - Parameters:
        ///   - match: the requests or responses to which the rule applies.
        ///   - options: how those responses are kept.
        init(for match: Match, options: Options) {
            self.match = match
            cacheOptions = options
        }

        /// A rule that sets the given properties of ``Options``. Other rules and the configuration decide those that
        /// are nil.
        /// - Parameters:
        ///   - match: the requests or responses to which the rule applies.
        ///   - storage: where they are kept; see ``Options/storage``.
        ///   - lifetime: how long they are fresh; see ``Options/lifetime``.
        ///   - staleWhileRevalidate: how long a stale one may be served while it is refreshed; see
        ///     ``Options/staleWhileRevalidate``.
        ///   - staleIfError: how long a stale one may replace an error; see ``Options/staleIfError``.
        ///   - fallback: which one may replace an error; see ``Options/fallback``.
        ///   - minimumInterval: the URL is asked at most once in this time; see ``Options/minimumInterval``.
        ///   - errorLifetime: how long an error answers; see ``Options/errorLifetime``.
        ///   - invalidatesURL: whether an unsafe request removes what is stored of its URL; see
        ///     ``Options/invalidatesURL``.
        ///   - minimumDiskLifetime: what is fresh for a shorter time is kept in memory only; see
        ///     ``Options/minimumDiskLifetime``.
        ///   - keyPolicy: the name of the key policy; see ``Options/keyPolicy``.
        ///   - tags: names of groups, for removals; see ``Options/tags``.
        ///   - isPinned: whether they are evicted last; see ``Options/isPinned``.
        public init(
            for match: Match, storage: Options.Storage? = nil, lifetime: Options.Lifetime? = nil,
            staleWhileRevalidate: TimeSpan? = nil, staleIfError: TimeSpan? = nil, fallback: Options.Fallback? = nil,
            minimumInterval: TimeSpan? = nil, errorLifetime: TimeSpan? = nil, invalidatesURL: Bool? = nil,
            minimumDiskLifetime: TimeSpan? = nil, keyPolicy: String? = nil, tags: Set<String> = [],
            isPinned: Bool? = nil
        ) {
            self.init(
                for: match,
                options: Options(
                    storage: storage, lifetime: lifetime, staleWhileRevalidate: staleWhileRevalidate,
                    staleIfError: staleIfError, fallback: fallback, minimumInterval: minimumInterval,
                    errorLifetime: errorLifetime, invalidatesURL: invalidatesURL,
                    minimumDiskLifetime: minimumDiskLifetime, keyPolicy: keyPolicy, tags: tags, isPinned: isPinned))
        }

        /// The options that are applied. Of a rule with an invalid pattern only `storage` is, which then applies to
        /// every request. A rule by content type chooses no key policy: the key was made before there was a response.
        var appliedOptions: Options {
            switch match.kind {
            case .nothing: return Options(storage: cacheOptions.storage)
            case .contentType:
                var options = cacheOptions
                options.keyPolicy = nil
                return options
            default: return cacheOptions
            }
        }

        /// What holds of the rule if it cannot be known whether it applies. To be safe: that it keeps responses off the
        /// disk, or out of the cache. Nil if it does neither.
        var ifItCannotBeJudged: Rule? {
            guard let storage = cacheOptions.storage, storage != .memoryAndDisk else { return nil }
            return Rule(for: match, options: Options(storage: storage))
        }

        /// Whether the rule applies to a request, as far as that is known before there is a response: a rule by content
        /// type may. Calls the app's closure.
        /// - Parameters:
        ///   - url: nil for a URL that no key can be made of.
        ///   - json: the body of the request, if it is a JSON object.
        func mayApply(
            to request: DiskURLCache.Request, canonicalURL url: String?, json: @autoclosure () -> [String: Any]?
        ) -> Bool {
            switch match.kind {
            case .nothing: return ifItCannotBeJudged != nil
            case .all, .contentType: return true
            case .request(let predicate): return predicate(request.urlRequest)
            case .json(let predicate):
                guard let body = json() else { return false }
                return predicate(body, request.urlRequest)
            case .url(let pattern):
                guard let url else { return false }
                return pattern.matches(url)
            case .path(let path, let host):
                guard let url else { return false }
                return Self.isBelow(path, host: host, url)
            case .host(let name):
                guard let url else { return false }
                let host = URLCanonicalizer.host(ofNormal: url)
                return host == name || host.hasSuffix("." + name)
            }
        }

        /// Whether a rule that may apply to a request does so, once the response is known.
        func applies(to contentType: String?) -> Bool {
            guard case .contentType(let pattern) = match.kind else { return true }
            guard let contentType else { return false }
            // If it is there several times, any of them counts: a recipient may take each.
            return FieldSyntax.members(of: contentType).contains { member in
                let type = member.prefix { $0 != ";" }.lowercased().filter { $0 != " " && $0 != "\t" }
                return Glob.matches(pattern.utf8, type.utf8)
            }
        }

        private static func isBelow(_ path: String, host: String?, _ url: String) -> Bool {
            guard host == nil || host == URLCanonicalizer.host(ofNormal: url) else { return false }
            // The first slash after those of the scheme.
            guard let start = url.utf8.dropFirst(8).firstIndex(of: UInt8(ascii: "/")) else { return false }
            let pathAndQuery = url[start...]
            guard pathAndQuery.hasPrefix(path) else { return false }
            if path.hasSuffix("/") { return true }
            // `/a` is above `/a/b` and `/a?b`, but not above `/ab`.
            guard let next = pathAndQuery.utf8.dropFirst(path.utf8.count).first else { return true }
            return "/?;".utf8.contains(next)
        }
    }
}

extension DiskURLCache.Rule.Match {
    var isByContentType: Bool { if case .contentType = kind { true } else { false } }

    var isByJSON: Bool { if case .json = kind { true } else { false } }
}

extension DiskURLCache.Rule: PrintedByDescription {
    /// What the rule applies to, and its options, in one line.
    package var printedText: String { "\(match): \(cacheOptions)" }
}

extension DiskURLCache.Rule.Match: PrintedByDescription {
    /// The pattern, in its canonical form.
    package var printedText: String {
        switch kind {
        case .all: "all"
        case .url(let pattern): "url \(pattern.text)"
        case .path(let path, let host): "path \(path)\(host.map { " of \($0)" } ?? "")"
        case .host(let name): "host \(name)"
        case .contentType(let pattern): "content type \(pattern)"
        case .request: "a condition of the app"
        case .json: "a condition of the app on the JSON body"
        case .nothing(let problem): "nothing, since \(problem)"
        }
    }
}
