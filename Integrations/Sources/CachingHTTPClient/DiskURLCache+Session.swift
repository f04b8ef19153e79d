import AsyncHTTPClient
import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import NIOCore

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// Makes a `URLSession` that loads through this cache, and whose requests AsyncHTTPClient sends.
    ///
    /// ```swift
    /// let session = try cache.makeSession(client: HTTPClient.Configuration())
    /// let (data, response) = try await session.data(from: url)
    /// ```
    ///
    /// What the session does by itself, and what Foundation still sends: see
    /// `makeSession(configuration:delegate:delegateQueue:through:variant:)`. The client belongs to the session and is
    /// shut down when the next session is made after its end.
    /// - Parameters:
    ///   - configuration: of the session; copied.
    ///   - delegate: as of any session.
    ///   - delegateQueue: as of any session.
    ///   - client: proxies, trust, connections, time for connecting. The client follows no redirects, since the session
    ///     does. It decodes bodies, as `URLSession` does, whatever these settings say; their limit for decoded bodies
    ///     applies.
    ///   - eventLoopGroup: as of `HTTPClient`. It must live as long as the process, since
    ///     nothing says when the client is shut down.
    /// - Throws: `DiskURLCache.Error` with the code `settingsWithoutEffect` if the configuration of the session has
    ///   settings for Foundation's network, such as a proxy; ``UnknownTLSIdentity``.
    public func makeSession(
        configuration: URLSessionConfiguration = .default, delegate: (any URLSessionDelegate)? = nil,
        delegateQueue: OperationQueue? = nil, client: HTTPClient.Configuration,
        eventLoopGroup: any EventLoopGroup = HTTPClient.defaultEventLoopGroup
    ) throws -> URLSession {
        var client = client
        client.redirectConfiguration = .disallow
        if case .disabled = client.decompression { client.decompression = .enabled(limit: .none) }
        // As URLSession, which does not wait until a server that refuses connections accepts them.
        client.connectionPool.retryConnectionEstablishment = false
        client.refuseAnswersThatEndTheProcess()
        client.tracing.leaveOutTracerThatDoesNothing()
        let variant: String?
        switch TLSIdentity(&client) {
        case .anonymous: variant = nil
        case .named(let name): variant = "session \(name)"
        case .unknown: throw UnknownTLSIdentity()
        }
        let upstream = SessionUpstream(
            HTTPClient(eventLoopGroup: eventLoopGroup, configuration: client), on: eventLoopGroup.next())
        return try makeSession(
            configuration: configuration, delegate: delegate, delegateQueue: delegateQueue, through: upstream,
            variant: variant)
    }

    /// The TLS settings of a client have a callback, or a file that may change: nothing says which answers are for this
    /// client only, so that a cache must not keep them. Use certificates and keys that are in memory, or a
    /// ``CachingHTTPClient``, which does not store what such a client receives.
    public struct UnknownTLSIdentity: Swift.Error, CustomStringConvertible {
        /// What to do.
        public var description: String {
            "The client's TLS settings have a callback or a file that may change, so that its answers cannot be stored."
                + " Use certificates and keys in memory, or CachingHTTPClient."
        }
    }
}
