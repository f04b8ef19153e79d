import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// How the request's options, the rules and the configuration are combined.

extension DiskURLCache {
    /// - Parameter contentType: of the response, once there is one.
    func cacheOptions(for request: URLRequest, contentType: String? = nil) -> Options {
        guard !configuration.rules.isEmpty else { return request.cacheOptions ?? Options() }
        return cacheOptions(of: RuleTarget(request), contentType: contentType)
    }

    private func cacheOptions(of target: RuleTarget, contentType: String? = nil) -> Options {
        var cacheOptions = target.request.cacheOptions ?? Options()
        for rule in configuration.rules where rule.matches(target, contentType: contentType) {
            cacheOptions.complete(from: rule.appliedOptions)
        }
        return cacheOptions
    }

    /// The key under which the response to a request is kept; nil for a request that is not cached.
    package func key(for request: URLRequest) -> RequestKey? { keyDecision(for: request).key }

    /// The key, or the reason why there is none.
    package func keyDecision(for request: URLRequest) -> KeyDecision {
        let decision = policyDecision(for: request)
        guard configuration.isShared, let key = decision.key else { return decision }
        return .key(key.inSharedCache)
    }

    private func policyDecision(for request: URLRequest) -> KeyDecision {
        guard !configuration.rules.isEmpty || request.mayCarryOptions else {
            return configuration.keyPolicy.decision(for: request)
        }
        let target = RuleTarget(request)
        guard !isKeptOut(target) else { return .none(.keptOut) }
        guard let name = cacheOptions(of: target).keyPolicy else {
            return configuration.keyPolicy.decision(for: request)
        }
        return configuration.keyPolicies[name]?.decision(for: request) ?? .none(.keyPolicy)
    }

    /// Whether a request is never cached, whatever its response. A rule by content type that stores can be judged only when the response
    /// is known: until then no later rule keeps the request out.
    private func isKeptOut(_ target: RuleTarget) -> Bool {
        if let storage = target.request.cacheOptions?.storage { return storage == .never }
        for rule in configuration.rules {
            guard let storage = rule.cacheOptions.storage else { continue }
            if case .contentType = rule.match.kind {
                if storage != .never { return false }
            } else if rule.matches(target, contentType: nil) {
                return storage == .never
            }
        }
        return false
    }

    /// The options for a request. Rules by content type count if the head of a stored or received response is given.
    package func cachingOptions(for request: URLRequest, response: HeaderFields?) -> CachingOptions {
        guard !configuration.rules.isEmpty || request.mayCarryOptions else { return sharingOptions(nil) }
        let cacheOptions = cacheOptions(for: request, contentType: response?["Content-Type"])
        var options = sharingOptions(cacheOptions)
        switch cacheOptions.lifetime {
        case .whenMissing(let seconds)?: options.lifetime = .whenMissing(seconds: Int64(clampingSeconds: seconds))
        case .always(let seconds)?: options.lifetime = .always(seconds: Int64(clampingSeconds: seconds))
        case nil: break
        }
        if let seconds = cacheOptions.staleWhileRevalidate {
            options.defaultStaleWhileRevalidate = Int64(clampingSeconds: seconds)
        }
        if let seconds = cacheOptions.staleIfError { options.defaultStaleIfError = Int64(clampingSeconds: seconds) }
        return options
    }

    /// The options of the configuration, and whether the request's key policy keys its cookie.
    func sharingOptions(_ cacheOptions: Options?) -> CachingOptions {
        var options = CachingOptions(configuration, isOffline: isOffline)
        guard configuration.isShared else { return options }
        options.isShared = true
        options.isCautious = configuration.sharesCautiously
        options.targetedFields = configuration.targetedFields
        let policy = cacheOptions?.keyPolicy.map { configuration.keyPolicies[$0] } ?? configuration.keyPolicy
        options.keysCookie = policy?.headerNames.contains("cookie") == true
        return options
    }

    // MARK: Tags

    /// The tags of a response that is stored: those of the options, and the one of the request's credentials.
    func tags(of cacheOptions: Options, for request: URLRequest) -> [String] {
        var tags = cacheOptions.tags
        if let credentials = request.value(forHTTPHeaderField: "Authorization") {
            tags.insert(Self.tag(ofCredentials: credentials))
        }
        return tags.isEmpty ? [] : tags.sorted()
    }

    /// The tags that a request brings to the entry that answers it. Cheap for a cache and a request without tags.
    func tagsToAdd(for request: URLRequest) -> Set<String> {
        guard rulesHaveTags || request.mayCarryOptions else { return [] }
        return cacheOptions(for: request).tags
    }

    /// An entry that answers a request with tags gets them, whatever request it was stored for.
    package func addTags(to metadata: EntryMetadata, of key: RequestKey, for request: URLRequest) {
        let tags = tagsToAdd(for: request)
        guard !tags.isSubset(of: metadata.tags) else { return }
        // A rule may use the cache, so this is not under a lock.
        let response = metadata.http
        _ = store.update(metadata.sequence, of: key.keeping(response)) {
            $0.tags = Set($0.tags).union(tags).sorted()
        }
    }

    /// The tag of every entry that was stored for a request with this `Authorization`. 24 bits of a digest: enough to remove hardly ever
    /// the entries of other credentials too, too little to confirm a guessed password.
    static func tag(ofCredentials value: String) -> String {
        "authorization \(SHA256Digest.digest(of: "authorization:\(value)").hex.prefix(6))"
    }

    /// Whether a response is worth a file: it does not expire too soon.
    func livesLongEnoughForDisk(_ response: StoredResponse, cacheOptions: Options, options: CachingOptions) -> Bool {
        let minimum = cacheOptions.minimumDiskLifetime ?? configuration.minimumDiskLifetime
        guard minimum > 0 else { return true }
        let freshness = Freshness(of: ReuseFacts(response), options: options, now: configuration.clock.now())
        return Double(freshness.lifetime.subtractingSaturated(freshness.age)) >= minimum
    }
}

extension CachingOptions {
    init(_ configuration: DiskURLCache.Configuration, isOffline: Bool) {
        self.init()
        usesHeuristicFreshness = configuration.usesHeuristicFreshness
        defaultStaleWhileRevalidate = configuration.staleWhileRevalidate.map { Int64(clampingSeconds: $0) }
        defaultStaleIfError = configuration.staleIfError.map { Int64(clampingSeconds: $0) }
        self.isOffline = isOffline
    }
}
