import DiskURLCache
import Foundation

extension DiskURLCache {
    /// Makes a session that loads through this cache, and whose requests an HTTP client of the app sends instead of
    /// Foundation's.
    ///
    /// ```swift
    /// let session = try cache.makeSession(through: transport)
    /// let (data, response) = try await session.data(from: url)
    /// ```
    ///
    /// The session is a `URLSession` like any other: its delegate decides about redirects, storage and credentials, its
    /// tasks can be suspended and cancelled, its cookies are kept and sent, and its timeouts apply. Errors are
    /// `URLError`s: those of the transport, or `.unknown` with the transport's error under `NSUnderlyingErrorKey`.
    /// Every data task is sent by the transport, also one that is not cached, such as a `POST`. Foundation itself sends
    /// uploads, downloads, bodies that are streams, WebSockets, and a request that is repeated with credentials.
    /// Proxies, connections and trust are matters of the client: its settings decide, not the delegate of the session.
    /// They do not hold for what Foundation sends.
    ///
    /// The transport and the cache are kept as long as the session, and until the next session is made after its end.
    /// On Apple platforms this is experimental: see `makeSession(configuration:delegate:delegateQueue:)`.
    /// - Parameters:
    ///   - configuration: is copied.
    ///   - delegate: as of any session.
    ///   - delegateQueue: as of any session.
    ///   - transport: must decode the content codings that it asks for by `Accept-Encoding`, as `URLSession` does. It
    ///     need not watch the time: the session's timeouts cancel its task.
    ///   - variant: as of `load(_:through:variant:progress:redirect:)`.
    /// - Throws: `DiskURLCache.Error` with the code `settingsWithoutEffect` for a configuration that a transport cannot
    ///   follow, such as one with a proxy or with protocol classes of the app; `description` names the settings.
    public func makeSession(
        configuration: URLSessionConfiguration = .default, delegate: (any URLSessionDelegate)? = nil,
        delegateQueue: OperationQueue? = nil, through transport: some CallbackTransport, variant: String? = nil
    ) throws -> URLSession {
        try makeSession(
            configuration: configuration, delegate: delegate, delegateQueue: delegateQueue,
            through: OpenTransport(transport, keyVariant: variant))
    }
}
