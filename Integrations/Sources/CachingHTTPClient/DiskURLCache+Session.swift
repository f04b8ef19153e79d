import AsyncHTTPClient
import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import NIOCore
import NIOFoundationCompat
import NIOHTTP1
import NIOHTTPCompression
import NIOPosix
import NIOSSL

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
    /// shut down when the next session is
    /// made after its end.
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
        client.tracing.leaveOutTracerThatDoesNothing()
        let variant: String?
        switch TLSIdentity(&client) {
        case .anonymous: variant = nil
        case .named(let name): variant = "decoded \(name)"
        case .unknown: throw UnknownTLSIdentity()
        }
        let upstream = SessionUpstream(HTTPClient(eventLoopGroup: eventLoopGroup, configuration: client))
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

/// Sends the requests of a session through an `HTTPClient`, which belongs to it.
private final class SessionUpstream: DiskURLCache.Transport {
    private let client: HTTPClient

    init(_ client: HTTPClient) {
        self.client = client
    }

    deinit {
        // Not waited for: a failure leaves nothing that could be mended.
        client.shutdown { _ in }
    }

    func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
        var outgoing = HTTPClientRequest(url: request.url)
        outgoing.method = HTTPMethod(rawValue: request.method)
        outgoing.headers = HTTPHeaders(request.fields)
        // The client decodes these two. A body in any other coding would be stored as if it were decoded.
        let codings = outgoing.headers[canonicalForm: "Accept-Encoding"].map { $0.lowercased() }
        if codings.contains(where: { !["gzip", "deflate", "identity"].contains($0) }) {
            outgoing.headers.remove(name: "Accept-Encoding")
        }
        outgoing.body = request.body.flatMap { $0.isEmpty ? nil : .bytes($0) }
        var hasHead = false
        do {
            let response = try await execute(outgoing)
            hasHead = true
            try await response.deliver(to: receiver, method: request.method)
        } catch {
            throw SessionErrors.urlError(error, hasHead: hasHead)
        }
    }

    /// Sends a request without a body that is safe a second time if the connection ended before the answer: it may have
    /// been one that the server was about to close (RFC 9112 §9.3.1).
    private func execute(_ request: HTTPClientRequest) async throws -> HTTPClientResponse {
        do {
            return try await client.execute(request, deadline: .distantFuture)
        } catch  where request.method == .GET || request.method == .HEAD {
            guard SessionErrors.isEndOfConnection(error) else { throw error }
            return try await client.execute(request, deadline: .distantFuture)
        }
    }
}

/// Errors of AsyncHTTPClient with the codes that `URLSession` has for them. Where Foundation on Linux says `.unknown`,
/// they are the codes of Apple's.
private enum SessionErrors {
    /// - Parameter hasHead: whether there was a head before the error.
    static func urlError(_ error: any Error, hasHead: Bool) -> URLError {
        URLError(
            code(of: error, hasHead: hasHead),
            userInfo: [NSUnderlyingErrorKey: error, NSLocalizedDescriptionKey: "\(error)"])
    }

    /// Whether the server, or the way to it, ended the connection.
    static func isEndOfConnection(_ error: any Error) -> Bool {
        switch error {
        case let error as HTTPClientError: error == .remoteConnectionClosed
        case is ChannelError: true
        case let error as IOError: [ECONNRESET, EPIPE].contains(error.errnoCode)
        default: false
        }
    }

    private static func code(of error: any Error, hasHead: Bool) -> URLError.Code {
        switch error {
        case is CancellationError: return .cancelled
        case let error as HTTPClientError: return code(of: error, hasHead: hasHead)
        case let error as NIOConnectionError:
            let noAddress = error.connectionErrors.isEmpty && (error.dnsAError != nil || error.dnsAAAAError != nil)
            return noAddress ? .cannotFindHost : .cannotConnectToHost
        case let error as IOError:
            let isLost = [ECONNRESET, EPIPE, ENOTCONN].contains(error.errnoCode)
            return isLost ? .networkConnectionLost : .cannotConnectToHost
        case is NIOSSLError, is BoringSSLError: return .secureConnectionFailed
        case is NIOSSLExtraError: return .serverCertificateUntrusted
        case HTTPParserError.invalidEOFState where hasHead: return .networkConnectionLost
        case is HTTPParserError: return .badServerResponse
        case is NIOHTTPDecompression.DecompressionError, is NIOHTTPDecompression.ExtraDecompressionError:
            return .cannotDecodeRawData
        case is ChannelError: return .networkConnectionLost
        default: return .unknown
        }
    }

    private static func code(of error: HTTPClientError, hasHead: Bool) -> URLError.Code {
        switch error {
        case .cancelled: .cancelled
        case .connectTimeout, .readTimeout, .writeTimeout, .deadlineExceeded, .getConnectionFromPoolTimeout: .timedOut
        case .remoteConnectionClosed: hasHead ? .networkConnectionLost : .badServerResponse
        case .invalidURL, .emptyHost, .emptyScheme: .badURL
        default: .unknown
        }
    }
}
