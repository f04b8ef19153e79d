import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// How the request's options, the rules and the configuration are combined.

extension DiskURLCache {
    /// - Parameter contentType: of the response, once there is one.
    func cacheOptions(for target: RuleTarget, contentType: String? = nil) -> Options {
        var cacheOptions = target.request.options ?? Options()
        for rule in configuration.rules where rule.matches(target, contentType: contentType) {
            cacheOptions.complete(from: rule.appliedOptions)
        }
        return cacheOptions
    }

    func target(_ request: Request) -> RuleTarget {
        RuleTarget(request, hasRules: !configuration.rules.isEmpty)
    }

    func target(_ request: URLRequest) -> RuleTarget { target(Request(request)) }

    func keyed(_ request: Request, variant: String? = nil) -> KeyedRequest {
        let target = target(request)
        return KeyedRequest(target, keyDecision(for: target, variant: variant), salt: store.salt)
    }

    /// The key under which the response to a request is kept; nil for a request that is not cached.
    func key(for request: URLRequest) -> RequestKey? {
        if keysArePlain, let key = RequestKey(plain: request, HeaderFields(request)) { return key }
        return keyDecision(for: target(request)).key
    }

    /// The key, or the reason why there is none.
    func keyDecision(for target: RuleTarget, variant: String? = nil) -> KeyDecision {
        if let reason = keptOutReason(for: target) { return .none(reason) }
        var policy = configuration.keyPolicy
        if let name = cacheOptions(for: target).keyPolicy {
            guard let named = configuration.keyPolicies[name] else { return .none(.keyPolicy) }
            policy = named
        }
        return policy.decision(
            for: target.request,
            RequestKey.Form(isShared: configuration.isShared, variant: variant, salt: store.salt))
    }

    /// Why a request is never cached, whatever its response: which options say `.never`. A rule by content type that
    /// stores can be judged only when the response is known: until then no later rule keeps the request out.
    private func keptOutReason(for target: RuleTarget) -> Reason? {
        if let storage = target.request.options?.storage { return storage == .never ? .keptOut : nil }
        for (index, rule) in configuration.rules.enumerated() {
            guard let storage = rule.cacheOptions.storage else { continue }
            if case .contentType = rule.match.kind {
                if storage != .never { return nil }
            } else if rule.matches(target, contentType: nil) {
                return storage == .never ? keptOut(by: rule, at: index) : nil
            }
        }
        return nil
    }

    private func keptOut(by rule: Rule, at index: Int) -> Reason {
        let problem: String? = if case .nothing(let problem) = rule.match.kind { problem } else { nil }
        return .keptOut(byRule: index, "\(rule.match)", problem: problem)
    }

    /// Why a response is not stored: which options say `.never`. Nil if none does.
    func keptOutReason(for target: RuleTarget, contentType: String?) -> Reason? {
        if let storage = target.request.options?.storage { return storage == .never ? .keptOut : nil }
        for (index, rule) in configuration.rules.enumerated() {
            guard let storage = rule.cacheOptions.storage, rule.matches(target, contentType: contentType) else {
                continue
            }
            return storage == .never ? keptOut(by: rule, at: index) : nil
        }
        return nil
    }

    func cachingOptions(for target: RuleTarget, response: HeaderFields?) -> CachingOptions {
        let contentType = configuration.rules.isEmpty ? nil : response?["Content-Type"]
        return cachingOptions(by: cacheOptions(for: target, contentType: contentType))
    }

    /// The options of the request, the rules and the configuration, and whether the key policy keys the cookie.
    func cachingOptions(by cacheOptions: Options) -> CachingOptions {
        func seconds(_ time: TimeInterval?) -> Int64? { time.map { Int64(clampingSeconds: $0) } }
        var options = CachingOptions()
        options.isOffline = isOffline
        options.usesHeuristicFreshness = configuration.usesHeuristicFreshness
        options.defaultStaleWhileRevalidate = seconds(
            cacheOptions.staleWhileRevalidate ?? configuration.staleWhileRevalidate)
        options.defaultStaleIfError = seconds(cacheOptions.staleIfError ?? configuration.staleIfError)
        switch cacheOptions.lifetime {
        case .whenMissing(let seconds)?: options.lifetime = .whenMissing(seconds: Int64(clampingSeconds: seconds))
        case .always(let seconds)?: options.lifetime = .always(seconds: Int64(clampingSeconds: seconds))
        case nil: break
        }
        guard configuration.isShared else { return options }
        options.isShared = true
        options.isCautious = configuration.sharesCautiously
        options.targetedFields = configuration.targetedFields
        let policy = cacheOptions.keyPolicy.map { configuration.keyPolicies[$0] } ?? configuration.keyPolicy
        options.keysCookie = policy?.headerNames.contains("cookie") == true
        return options
    }

    // MARK: Tags

    /// The tags of a response that is stored: those of the options, of the response's groups, and of the request's
    /// credentials.
    func tags(of cacheOptions: Options, _ fields: HeaderFields, for request: Request) -> [String] {
        var tags = cacheOptions.tags.union(groupTags(of: fields, url: request.url))
        if let credentials = request.headerFields["Authorization"] {
            tags.insert(tag(ofCredentials: credentials))
        }
        return tags.isEmpty ? [] : tags.sorted()
    }

    /// The tags of the groups that a response of this URL belongs to.
    private func groupTags(of fields: HeaderFields, url: String) -> Set<String> {
        let names = CacheGroups.names(of: fields, keyFields: configuration.groupFields)
        guard !names.isEmpty, let origin = URLCanonicalizer.parts(of: url)?.origin else { return [] }
        return Set(names.map { CacheGroups.tag(of: $0, origin: origin) })
    }

    /// The tags that a request brings to the entry that answers it. Cheap for a cache and a request without tags.
    private func tagsToAdd(for target: RuleTarget) -> Set<String> {
        guard rulesHaveTags || target.request.options != nil else { return [] }
        return cacheOptions(for: target).tags
    }

    /// An entry that answers a request with tags gets them, whatever request it was stored for.
    func addTags(to metadata: EntryMetadata, of key: RequestKey, for target: RuleTarget) {
        let tags = tagsToAdd(for: target)
        guard metadata.tags.joined(withTags: tags).count > metadata.tags.count else { return }
        // A rule may use the cache, so this is not under a lock.
        let response = metadata.http
        _ = store.update(metadata.sequence, of: key.keeping(response)) {
            $0.tags = $0.tags.joined(withTags: tags)
        }
    }

    func freshen(_ sequence: UInt64, with response: StoredResponse, for hop: KeyedRequest) {
        guard let key = hop.key else { return }
        let now = now
        // A response that names other groups leaves those that it named before.
        let tags = tagsToAdd(for: hop.target).union(groupTags(of: response.fields, url: hop.request.url))
        _ = store.update(sequence, of: key.keeping(response)) { metadata in
            metadata.tags = metadata.tags.filter { !CacheGroups.isGroup($0) }.joined(withTags: tags)
            metadata.response = .http(response)
            metadata.storedAt = now
        }
    }

    /// The tag of every entry that was stored for a request with this `Authorization`. 24 bits of a digest: enough to
    /// remove hardly ever the entries of other credentials too, too little to confirm a guessed password.
    func tag(ofCredentials value: String) -> String {
        let text = "authorization:\(value)"
        return "authorization \((store.salt?.digest(of: text) ?? SHA256Digest.digest(of: text)).hex.prefix(6))"
    }

    /// Whether a response is worth a file: it does not expire too soon.
    func livesLongEnoughForDisk(_ response: StoredResponse, cacheOptions: Options) -> Bool {
        let minimum = cacheOptions.minimumDiskLifetime ?? configuration.minimumDiskLifetime
        guard minimum > 0 else { return true }
        let options = cachingOptions(by: cacheOptions)
        let freshness = Freshness(of: ReuseFacts(response).governed(by: options), options: options, now: now)
        return Double(freshness.timeToLive) >= minimum
    }
}
