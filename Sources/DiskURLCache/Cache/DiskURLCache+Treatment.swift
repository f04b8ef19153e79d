import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// How the request's treatment, the rules and the configuration are combined.

extension DiskURLCache {
    /// - Parameter contentType: of the response, once there is one.
    func treatment(for request: URLRequest, contentType: String? = nil) -> CacheTreatment {
        var treatment = request.cacheTreatment ?? CacheTreatment()
        for rule in configuration.rules where rule.matches(request, contentType: contentType) {
            treatment.complete(from: rule.treatment)
        }
        return treatment
    }

    /// The key under which the response to a request is kept; nil for a request that is not cached.
    func key(for request: URLRequest) -> RequestKey? {
        let key = policyKey(for: request)
        return configuration.sharing == .shared ? key?.inSharedCache : key
    }

    private func policyKey(for request: URLRequest) -> RequestKey? {
        guard !configuration.rules.isEmpty || request.mayCarryTreatment else {
            return configuration.keyPolicy.key(for: request)
        }
        guard !isKeptOut(request) else { return nil }
        let treatment = treatment(for: request)
        guard let name = treatment.keyPolicy else { return configuration.keyPolicy.key(for: request) }
        return configuration.keyPolicies[name]?.key(for: request)
    }

    /// Whether a request is never cached, whatever its response. A rule by content type that stores says so only when the response
    /// is known: until then no later rule keeps the request out.
    private func isKeptOut(_ request: URLRequest) -> Bool {
        if let storage = request.cacheTreatment?.storage { return storage == .never }
        for rule in configuration.rules {
            guard let storage = rule.treatment.storage else { continue }
            if case .contentType = rule.match.kind {
                if storage != .never { return false }
            } else if rule.matches(request, contentType: nil) {
                return storage == .never
            }
        }
        return false
    }

    /// The options for a request. Rules by content type count where the head of a stored or received response is given.
    func cachingOptions(for request: URLRequest, response: HeaderFields?) -> CachingOptions {
        var options = CachingOptions(configuration, isOffline: isOffline)
        options.isShared = configuration.sharing == .shared
        guard !configuration.rules.isEmpty || request.mayCarryTreatment else { return options }
        let treatment = treatment(for: request, contentType: response?["Content-Type"])
        switch treatment.lifetime {
        case .whenMissing(let seconds)?: options.lifetime = .whenMissing(seconds: Int64(clampingSeconds: seconds))
        case .always(let seconds)?: options.lifetime = .always(seconds: Int64(clampingSeconds: seconds))
        case nil: break
        }
        if let seconds = treatment.staleWhileRevalidate {
            options.defaultStaleWhileRevalidate = Int64(clampingSeconds: seconds)
        }
        if let seconds = treatment.staleIfError { options.defaultStaleIfError = Int64(clampingSeconds: seconds) }
        return options
    }

    /// Whether a response is worth a file: it does not expire too soon.
    func livesLongEnoughForDisk(_ response: StoredResponse, treatment: CacheTreatment, options: CachingOptions) -> Bool
    {
        let minimum = treatment.minimumDiskLifetime ?? configuration.minimumDiskLifetime
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
