import Dispatch
import Foundation

/// The cache itself: settings, store, loads in progress, events, clock. Loads and sessions use this class;
/// `DiskURLCache` makes a `URLCache` of it.
package final class CacheCore: Sendable {
    package let configuration: DiskURLCache.Configuration
    let store: TieredStore
    /// The loads in progress, which identical loads may join, and background refreshes.
    package let loads = LoadTable()
    /// Why part of the configuration has no effect; nil if all of it has.
    private let configurationError: DiskURLCache.Error?
    /// Whether the key of a plain request is just its URL, since nothing in the configuration adds to it: see
    /// `RequestKey(plain:_:)`.
    private let keysArePlain: Bool
    /// Whether the system's loader calls the cache, as `URLCache` documents.
    let isBySystem: Bool
    /// What was learned of the system's loader.
    let systemHits: Mutex<SystemHits>
    /// The options for decisions by HTTP about requests for which the app has set none.
    private let standardOptions: CachingOptions
    private let offline = Mutex(false)

    /// The queue for decisions and disk reads of loads. Not the queue that all sessions share, where other tasks would
    /// have to wait.
    static let lookupQueue = DispatchQueue(
        label: "DiskURLCache.lookup", qos: .userInitiated, attributes: .concurrent)

    package init(_ settings: DiskURLCache.Configuration) {
        let configuration = settings.normalized
        self.configuration = configuration
        let problem: DiskURLCache.Error?
        (store, problem) = Self.open(configuration)
        let wrongRules = RuleCheck.problems(
            in: configuration.rules, keyPolicies: Set(configuration.keyPolicies.keys))
        let policies = [configuration.keyPolicy] + configuration.keyPolicies.values
        let keyProblem =
            configuration.isShared && !policies.allSatisfy(\.identifiesByAuthorization)
            ? DiskURLCache.Error(.sharedKeyPolicy) : nil
        let bytes = "memoryCapacity or diskCapacity holds no response. They are in bytes: 16 << 20 is 16 MB."
        let capacityProblem =
            configuration.holdsNothing ? DiskURLCache.Error(.settingsWithoutEffect, details: bytes) : nil
        configurationError = problem ?? keyProblem ?? capacityProblem ?? RuleCheck.summary(of: wrongRules)
        keysArePlain = configuration.rules.isEmpty && configuration.keyPolicy.isPlain && !configuration.isShared
        isBySystem = configuration.platform.loadsBySystem
        systemHits = Mutex(SystemHits(configuration.platform))
        standardOptions = CachingOptions(DiskURLCache.Options(), configuration)
        // A path may contain a user's name, so it is not logged.
        if let problem, problem.path.isEmpty { hub.report(once: problem) }
        if let problem, !problem.path.isEmpty { hub.emit(.problem(problem)) }
        for problem in [keyProblem, capacityProblem].compactMap(\.self) { hub.report(once: problem) }
        for rule in wrongRules { hub.report(once: rule) }
    }

    /// Makes the layers, or finds those of an open cache with the same folder.
    private static func open(
        _ configuration: DiskURLCache.Configuration
    ) -> (store: TieredStore, problem: DiskURLCache.Error?) {
        if let store = configuration.store { return (store, nil) }
        let directory = configuration.directory ?? DiskURLCache.Configuration.defaultDirectory
        let foreignURL = ([directory] + configuration.fallbackDirectories).first { !$0.isFileURL }
        let problem = foreignURL.map { DiskURLCache.Error(.notAFileURL, path: $0.printed) }
        if let storage = configuration.storageMaker {
            let isRefused = !configuration.isShared && storage.isForSeveralUsers
            if isRefused { return (configuration.makeStore(), DiskURLCache.Error(.sharedStorage)) }
            return (configuration.makeStore(storage: storage), problem)
        }
        // A cache in memory only has no folder, and shares no layer with a cache that has one.
        if !directory.isFileURL || configuration.diskCapacity == 0 { return (configuration.makeStore(), problem) }
        let opened = OpenStores.open(directory, settings: configuration.ofStore) {
            configuration.makeStore(directory: directory)
        }
        if opened.differing.isEmpty || problem != nil { return (opened.store, problem) }
        let names = opened.differing.joined(separator: ", ")
        return (opened.store, DiskURLCache.Error(.settingsWithoutEffect, path: directory.path, details: names))
    }

    package var hub: EventHub { store.hub }
    package var now: Date { configuration.clock.now() }
    /// The largest body that one of the layers stores, in bytes.
    package var largestStorableBody: Int { store.largestStorableBody }
    /// The cache's identifier in `Cache-Status`; nil if responses do not get the field.
    var cacheStatusName: String? { configuration.cacheStatusName }

    /// See `DiskURLCache.isOffline`.
    var isOffline: Bool {
        get { offline.withLock { $0 } }
        set { offline.withLock { $0 = newValue } }
    }

    /// See `DiskURLCache.openingError`.
    var openingError: DiskURLCache.Error? { configurationError ?? store.openingError }

    // MARK: Requests

    /// Finds out everything about a request: its key and options. Calls the app's rules and the closure of a key
    /// policy, once each.
    /// - Parameter variant: part of the key; see ``LoadTransport/keyVariant``.
    package func resolve(_ request: DiskURLCache.Request, variant: String? = nil) -> ResolvedRequest {
        let rules = AppliedRules(configuration.rules, to: request)
        let hasOptions = request.hasOptions || !rules.areNone
        let options = hasOptions ? rules.options(after: request.options) : DiskURLCache.Options()
        let refusal = rules.reasonToKeepOut(request.options).map { KeyDecision.none($0) }
        let decision = refusal ?? keyDecision(for: request, options, variant: variant)
        // Moved, not copied: they are large.
        return ResolvedRequest(
            request, decision, rules: rules, options: consume options, hasOptions: hasOptions, salt: salt)
    }

    /// By which keys have digests of credentials.
    package var salt: CredentialSalt? { store.salt }

    /// Whether `resolve` has to read the directory's salt for a request, which uses files.
    func readsSalt(for request: DiskURLCache.Request) -> Bool {
        guard let salt, !salt.isRead else { return false }
        return request.headerFields["Authorization"] != nil || request.headerFields["Cookie"] != nil
            || request.url.contains(byte: UInt8(ascii: "@")) || !configuration.keyPolicy.identifiesByAuthorization
    }

    private func keyDecision(
        for request: DiskURLCache.Request, _ options: DiskURLCache.Options, variant: String?
    ) -> KeyDecision {
        let form = RequestKey.Form(isShared: configuration.isShared, variant: variant, salt: salt)
        guard let name = options.keyPolicy else { return configuration.keyPolicy.decision(for: request, form) }
        return configuration.keyPolicies[name]?.decision(for: request, form) ?? .none(.keyPolicy)
    }

    /// Whether no key and no rule looks at the cookies of a request.
    func ignoresCookies(of request: DiskURLCache.Request) -> Bool { keysArePlain && !request.hasOptions }

    /// The key of a plain request, which is all that has to be known about it; nil for other requests.
    func plainKey(for request: URLRequest, _ fields: HeaderFields) -> RequestKey? {
        keysArePlain ? RequestKey(plain: request, fields) : nil
    }

    /// The key of a request; nil if the request is not cached.
    func key(for request: URLRequest) -> RequestKey? {
        plainKey(for: request, HeaderFields(request)) ?? resolve(DiskURLCache.Request(request)).key
    }

    /// The options of the request, the rules and the configuration, for the decisions by HTTP.
    /// - Parameter response: the fields of the stored or received response, if there is one, so that rules by content
    ///   type apply.
    package func cachingOptions(for hop: ResolvedRequest, response: HeaderFields?) -> CachingOptions {
        var options = hop.hasOptions ? cachingOptions(by: hop.options(for: response)) : standardOptions
        // A change would copy them.
        if isOffline { options.isOffline = true }
        // A method that has a key is cacheable: only a key policy gives a key to methods other than GET and HEAD.
        if hop.hasKey { options.allow(hop.facts.method) }
        return options
    }

    /// The same by the one of these stored responses that answers the request.
    package func cachingOptions(for hop: ResolvedRequest, stored variants: [StoredVariant]) -> CachingOptions {
        guard variants.count > 1, hop.dependsOnContentType else {
            return cachingOptions(for: hop, response: variants.first?.response.fields)
        }
        return cachingOptions(for: hop, response: hop.facts.selected(from: variants)?.response.fields)
    }

    /// Whether the request may be sent, whatever is stored.
    func allowsRequest(_ hop: ResolvedRequest) -> Bool {
        !isOffline && hop.facts.directives.allowNetwork(hop.request.policy)
    }

    func cachingOptions(by options: DiskURLCache.Options) -> CachingOptions {
        var all = CachingOptions(options, configuration)
        if isOffline { all.isOffline = true }
        return all
    }
}

extension CachingOptions {
    fileprivate init(_ options: DiskURLCache.Options, _ configuration: DiskURLCache.Configuration) {
        func seconds(_ time: DiskURLCache.TimeSpan?) -> Int64? { time.map { Int64(clampingSeconds: $0.seconds) } }
        var values = Values()
        values.usesHeuristicFreshness = configuration.usesHeuristicFreshness
        values.defaultStaleWhileRevalidate = seconds(options.staleWhileRevalidate ?? configuration.staleWhileRevalidate)
        values.defaultStaleIfError = seconds(options.staleIfError ?? configuration.staleIfError)
        values.acceptsAnyStored = options.fallback == .anyStored
        // No request is sent sooner.
        func atLeast(_ time: DiskURLCache.TimeSpan?) -> Int64? {
            time.map { Int64(clampingSeconds: $0.seconds.rounded(.up)) }
        }
        values.minimumInterval = atLeast(options.minimumInterval)
        values.errorLifetime = atLeast(options.errorLifetime)
        switch options.lifetime {
        case .whenMissing(let time)?: values.lifetime = .whenMissing(seconds: Int64(clampingSeconds: time.seconds))
        case .always(let time)?: values.lifetime = .always(seconds: Int64(clampingSeconds: time.seconds))
        case .atLeast(let time)?: values.lifetime = .atLeast(seconds: Int64(clampingSeconds: time.seconds))
        case nil: break
        }
        if configuration.isShared {
            values.isShared = true
            values.isCautious = configuration.sharesCautiously
            values.targetedFields = configuration.targetedFields
            let policy = options.keyPolicy.map { configuration.keyPolicies[$0] } ?? configuration.keyPolicy
            values.keysCookie = policy?.fieldNames.contains("cookie") == true
        }
        self.init(values)
    }
}

/// The object that Foundation holds, `DiskURLCache`. The loads of a session reach the cache through it; code below that
/// class knows only this protocol.
package protocol CacheShell: AnyObject {
    var core: CacheCore { get }
}
