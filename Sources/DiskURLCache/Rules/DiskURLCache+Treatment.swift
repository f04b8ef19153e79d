import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// How the wishes of requests, rules and configuration come together.

extension DiskURLCache {
    /// - Parameter contentType: of the response, once there is one.
    func treatment(for request: URLRequest, contentType: String? = nil) -> Treatment {
        var treatment = request.cacheTreatment ?? Treatment()
        for rule in configuration.rules where rule.matches(request, contentType: contentType) {
            treatment.complete(from: rule.treatment)
        }
        return treatment
    }

    /// The key of a plain request whose URL is in normal form; nil says nothing.
    func plainKey(for request: URLRequest) -> RequestKey? {
        hasPlainKeys ? request.plainURL.flatMap(RequestKey.init(normalURL:)) : nil
    }

    /// The key under which the response to a request is kept; nil for a request that is not cached.
    func key(for request: URLRequest) -> RequestKey? {
        if let key = plainKey(for: request) { return key }
        guard !configuration.rules.isEmpty || request.mayCarryTreatment else {
            return configuration.keyPolicy.key(for: request)
        }
        let treatment = treatment(for: request)
        guard treatment.storage != .never else { return nil }
        guard let name = treatment.keyPolicy else { return configuration.keyPolicy.key(for: request) }
        return configuration.keyPolicies[name]?.key(for: request)
    }

    /// What the HTTP engine may do for a request, given the head of the stored or of the received response.
    func cachingOptions(for request: URLRequest, response: HeaderFields?) -> CachingOptions {
        var options = CachingOptions(configuration.http, isOffline: isOffline)
        guard !configuration.rules.isEmpty || request.mayCarryTreatment else { return options }
        let treatment = treatment(for: request, contentType: response?["Content-Type"])
        switch treatment.lifetime {
        case .whenMissing(let seconds)?: options.lifetime = .whenMissing(seconds: Int(clampingSeconds: seconds))
        case .always(let seconds)?: options.lifetime = .always(seconds: Int(clampingSeconds: seconds))
        case nil: break
        }
        if let seconds = treatment.staleWhileRevalidate {
            options.defaultStaleWhileRevalidate = Int(clampingSeconds: seconds)
        }
        if let seconds = treatment.staleIfError { options.defaultStaleIfError = Int(clampingSeconds: seconds) }
        return options
    }

    /// Whether a response is worth a place on disk: it may be written, and does not expire too soon.
    func belongsOnDisk(_ response: StoredResponse, treatment: Treatment, options: CachingOptions) -> Bool {
        guard treatment.storage != .memoryOnly else { return false }
        let minimum = treatment.minimumDiskLifetime ?? configuration.minimumDiskLifetime
        guard minimum > 0 else { return true }
        let freshness = Freshness(of: ReuseFacts(response), options: options, now: configuration.clock.now())
        return Double(freshness.lifetime.subtractingSaturated(freshness.age)) >= minimum
    }
}
