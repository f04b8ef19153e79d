import Foundation

// How sessions find their cache.

extension DiskURLCache {
    /// The default folder of a cache: for each program, named by its bundle identifier or process name, a folder inside
    /// the user's folder for caches.
    ///
    /// On Linux the caches folder is the first of `CACHE_DIRECTORY` (which systemd sets for a service),
    /// `XDG_CACHE_HOME`, and `.cache` in the home folder, which the password database names if `HOME` is unset. Without
    /// a home folder, as in many containers, it is `user-1000` (by the number of the user) in the temporary folder.
    public static var defaultDirectory: URL { Configuration.defaultDirectory }

    /// Makes the sessions of a configuration use this cache. Call it before the session is made; for
    /// `URLSession.shared.configuration`, which the session keeps using on Linux, it can be called at any time. A
    /// second call has no effect.
    ///
    /// On Linux this sets `urlCache` and puts the library's loader before all other protocol classes; a session of
    /// ``makeSession(configuration:delegate:delegateQueue:)`` spends less on each load. On Apple platforms it only sets
    /// `urlCache`: the system's loader then uses the cache, as `URLCache` documents. The features of this library's
    /// loader (stale-while-revalidate, stale-if-error, collapsing, `Cache-Status`) need
    /// ``makeSession(configuration:delegate:delegateQueue:)`` there.
    public func attach(to configuration: URLSessionConfiguration) {
        configuration.urlCache = self
        guard core.configuration.platform.attachesLoader else { return }
        var classes = configuration.protocolClasses ?? []
        classes.removeAll(where: CachingURLProtocol.isLoader)
        classes.insert(CachingURLProtocol.self, at: 0)
        configuration.protocolClasses = classes
    }

    /// Makes a session that loads through this cache, by this library's loader on every platform.
    ///
    /// Experimental on Apple platforms, where nobody has run it: <doc:ApplePlatforms>. There the loader knows this
    /// session by its configuration; so make each session by a call of its own, not from this one's `configuration`.
    ///
    /// The configuration is copied. Loads that the library serves use this cache instead of its `urlCache`; on Apple
    /// platforms its `urlCache` is nil, so that the system does not search a second time. The configuration's cookies,
    /// credentials and fields apply, and the delegate decides about challenges, redirects and storage as in any
    /// session. The system loads tasks that are not cached (uploads, downloads, WebSockets, streamed bodies, requests
    /// without a key). On watchOS, and for a background configuration, for which the system allows no other loader, the
    /// session is one that ``attach(to:)`` prepared.
    public func makeSession(
        configuration: URLSessionConfiguration = .default, delegate: (any URLSessionDelegate)? = nil,
        delegateQueue: OperationQueue? = nil
    ) -> URLSession {
        makeSession(prepared(configuration), delegate, delegateQueue)
    }

    /// A copy of a configuration, for a session of this cache.
    private func prepared(_ configuration: URLSessionConfiguration) -> URLSessionConfiguration {
        NetworkSessions.shared.releaseAbandoned()
        let configuration = (configuration.copy() as? URLSessionConfiguration) ?? configuration
        attach(to: configuration)
        return configuration
    }

    /// - Parameter configuration: is changed and kept; also that of the transport.
    private func makeSession(
        _ configuration: URLSessionConfiguration, _ delegate: (any URLSessionDelegate)?, _ queue: OperationQueue?,
        through transport: SessionTransport? = nil
    ) -> URLSession {
        let ofLoader = LoadingSystem.makeSession(configuration, cache: self, delegate: delegate, delegateQueue: queue)
        let session =
            ofLoader ?? URLSession(configuration: configuration, delegate: delegate, delegateQueue: queue)
        // Each reader gets a copy of a session's configuration on Apple platforms, and nobody changes that of a session
        // for the loader.
        let isCopied = ofLoader != nil && core.configuration.platform.makesSessionClasses
        if transport != nil || isCopied {
            // The session has a copy. What is kept beside it must not keep this cache alive after its session.
            configuration.urlCache = nil
            let outer = OuterSession(session, transport: transport, configuration: configuration)
            NetworkSessions.shared.add(outer, for: session)
        }
        return session
    }

    /// A session whose requests a transport sends.
    /// - Throws: ``Error/Code/settingsWithoutEffect``.
    package func makeSession(
        configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue: OperationQueue?,
        through transport: any LoadTransport
    ) throws -> URLSession {
        var withoutEffect = SessionTransport.settingsWithoutEffect(configuration)
        if !LoadingSystem.canReplaceNetwork(core.configuration.platform) {
            withoutEffect.append("the transport (no protocol class of an app serves sessions here)")
        }
        guard withoutEffect.isEmpty else {
            throw Error(
                .settingsWithoutEffect,
                details: "The session was not made, since its transport cannot follow these settings of the"
                    + " configuration: \(withoutEffect.joined(separator: ", ")). Leave them as they are by default.")
        }
        let configuration = prepared(configuration)
        return makeSession(
            configuration, delegate, delegateQueue, through: SessionTransport(transport, configuration))
    }
}

extension CachedURLResponse {
    /// For a HEAD that is answered by the response to a GET.
    func withoutBody() -> CachedURLResponse {
        CachedURLResponse(response: response, data: Data(), userInfo: userInfo, storagePolicy: storagePolicy)
    }
}
