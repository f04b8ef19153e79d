import AsyncHTTPClient
import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import Logging
import NIOCore
import NIOFoundationCompat
import NIOHTTP1
import Tracing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// An `HTTPClient` with an HTTP cache in front of it. Call `execute` as before; responses that the origin allows to
/// reuse come from memory or disk.
///
/// ```swift
/// let client = CachingHTTPClient(storage: .init(memoryCapacity: 64 << 20, diskCapacity: 1 << 30))
/// let response = try await client.execute(HTTPClientRequest(url: "https://example.com/feed"), timeout: .seconds(10))
/// ```
///
/// The engine is `DiskURLCache`: keys, rules, freshness, validation, `stale-while-revalidate`, `stale-if-error`, shared
/// requests, and events. Bodies stream both ways at the reader's pace. A response that cannot be stored flows through
/// with the fields that the origin sent, each `Set-Cookie` by itself.
public final class CachingHTTPClient: Sendable {
    /// The cache with the responses: for `cache.events()`, `cache.statistics`, and removals by URL, tag, host or age.
    ///
    /// Its methods that take a `URLRequest`, such as `cachedResponse(for:)`, `contains(_:)`, `setPinned(_:for:)` and
    /// `removeCachedResponse(for:)`, know only the responses of `URLSession`. Their bodies are decoded; those of this
    /// client only by its `decompression`, if their coding is `gzip` or `deflate`, so they have keys of their own. For
    /// a request of this client there is ``removeCachedResponse(for:cacheOptions:)``, and
    /// ``explanation(for:cacheOptions:)``.
    public let cache: DiskURLCache

    private let client: HTTPClient
    private let decodes: Bool
    private let identity: TLSIdentity
    /// The configuration's tracer; nil if it does nothing.
    let tracer: (any Tracer)?
    let requests = OpenRequests()
    private let followsRedirects: Bool
    private let methodsKeyedByBody: Set<String>

    /// A client with a cache that you made. The cache is private unless its configuration says `isShared = true`; in a
    /// server that sends requests for many users, a private cache gives the response of one user to another.
    ///
    /// This makes the `HTTPClient` itself, since the client must not follow redirects: the cache looks up and stores
    /// each hop under its own URL.
    /// - Parameters:
    ///   - cache: may be used by other clients and by `URLSession` at the same time.
    ///   - eventLoopGroup: as in `HTTPClient`.
    ///   - configuration: as in `HTTPClient`. Its `redirectConfiguration` is not used.
    ///   - followsRedirects: follow up to 20 redirects. If false, the caller gets the redirect.
    ///   - methodsKeyedByBody: methods whose bodies the cache's key policy has to see: `QUERY` (RFC 10008), and for
    ///     GraphQL also `POST` (`DiskURLCache.KeyPolicy.includingBody(ofMethods:asJSON:)`). Their bodies are gathered
    ///     in memory before they are sent, by the deadline of the request. One of more than 1 MB streams instead, as
    ///     all other bodies do, with `Transfer-Encoding: chunked` over HTTP/1.1. A request with a body that streams is
    ///     never answered from the cache.
    public init(
        cache: DiskURLCache, eventLoopGroup: any EventLoopGroup = HTTPClient.defaultEventLoopGroup,
        configuration: HTTPClient.Configuration = HTTPClient.Configuration(), followsRedirects: Bool = true,
        methodsKeyedByBody: [HTTPMethod] = [.RAW(value: "QUERY")]
    ) {
        var configuration = configuration
        configuration.redirectConfiguration = .disallow
        self.cache = cache
        self.followsRedirects = followsRedirects
        self.methodsKeyedByBody = Set(methodsKeyedByBody.map(\.rawValue))
        if case .enabled = configuration.decompression { decodes = true } else { decodes = false }
        configuration.refuseAnswersThatEndTheProcess()
        configuration.tracing.leaveOutTracerThatDoesNothing()
        tracer = configuration.tracing.tracer
        identity = TLSIdentity(&configuration)
        client = HTTPClient(eventLoopGroup: eventLoopGroup, configuration: configuration)
    }

    /// A client that makes its own shared cache (RFC 9111), which does not store responses for a single user.
    /// - Parameter storage: the settings of the cache, which is shared whatever `isShared` says.
    public convenience init(
        storage: DiskURLCache.Configuration, eventLoopGroup: any EventLoopGroup = HTTPClient.defaultEventLoopGroup,
        configuration: HTTPClient.Configuration = HTTPClient.Configuration(), followsRedirects: Bool = true,
        methodsKeyedByBody: [HTTPMethod] = [.RAW(value: "QUERY")]
    ) {
        // This client mostly runs in servers, which send requests for many users.
        var storage = storage
        storage.isShared = true
        let cache = DiskURLCache(configuration: storage)
        self.init(
            cache: cache, eventLoopGroup: eventLoopGroup, configuration: configuration,
            followsRedirects: followsRedirects, methodsKeyedByBody: methodsKeyedByBody)
    }

    /// Saves the index of the cache and shuts the client down. Call it once, at the end, as with `HTTPClient`, unless
    /// `run()` does that. Afterwards all requests fail, also those that the cache could answer, and so do responses
    /// that are being read.
    public func shutdown() async throws {
        requests.close()
        await cache.perform { $0.flush() }
        try await client.shutdown()
    }

    /// Answers a request from memory, disk, or the origin.
    /// - Parameters:
    ///   - request: as for `HTTPClient`.
    ///   - timeout: within which there must be a head, redirects included.
    ///   - cacheOptions: how the response is stored, if that differs from the cache's configuration.
    ///   - logger: as for `HTTPClient`. URL and source of a response are logged on level `debug`.
    public func execute(
        _ request: HTTPClientRequest, timeout: TimeAmount, cacheOptions: DiskURLCache.Options? = nil,
        logger: Logger? = nil
    ) async throws -> HTTPClientResponse {
        try await execute(request, deadline: .now() + timeout, cacheOptions: cacheOptions, logger: logger)
    }

    /// Answers a request from memory, disk, or the origin.
    /// - Parameters:
    ///   - request: as for `HTTPClient`.
    ///   - deadline: by which there must be a head, redirects included.
    ///   - cacheOptions: how the response is stored, if that differs from the cache's configuration.
    ///   - logger: as for `HTTPClient`. URL and source of a response are logged on level `debug`.
    /// - Throws: the errors of `HTTPClient`, or `URLError` if the cache forbids the network (`cache.isOffline`), or if
    ///   the answer is a 101.
    public func execute(
        _ request: HTTPClientRequest, deadline: NIODeadline, cacheOptions: DiskURLCache.Options? = nil,
        logger: Logger? = nil
    ) async throws -> HTTPClientResponse {
        let open = try requests.begin()
        return try await traced(request) {
            try await load(request, deadline: deadline, cacheOptions: cacheOptions, logger: logger, open)
        }
    }

    private func load(
        _ request: HTTPClientRequest, deadline: NIODeadline, cacheOptions: DiskURLCache.Options?, logger: Logger?,
        _ open: OpenRequests.Request
    ) async throws -> (HTTPClientResponse, DiskURLCache.Report.Outcome?) {
        // Requests to Unix sockets, and texts that are not URLs, go to the `HTTPClient` unchanged.
        guard let (asked, body) = try await asked(request, cacheOptions, deadline: deadline) else {
            var response = try await client.execute(request, deadline: deadline, logger: logger)
            response.body = .stream(OpenBody(body: response.body, request: open))
            return (response, nil)
        }
        var request = request
        if let body { request.body = body }
        let upstream = Upstream(
            client, decodes: decodes, request, asked: asked, deadline: deadline, logger: logger)
        let stream: DiskURLCache.ResponseStream
        do {
            stream = try await cache.load(asked, through: upstream, variant: variant(of: request)) {
                [followsRedirects] in followsRedirects ? upstream.redirected($0, of: $1, to: $2) : nil
            }
        } catch let error as URLError where error.code == .timedOut {
            throw HTTPClientError.deadlineExceeded
        } catch let error as URLError where error.code == .httpTooManyRedirects {
            throw upstream.tooManyRedirects
        }
        if let logger, logger.logLevel <= .debug {
            let report = stream.report
            // A query may be a signature.
            let url = (report.url?.absoluteString ?? "").prefix { $0 != "?" && $0 != "#" }
            let query = report.url?.query == nil ? "" : "?…"
            logger.debug(
                "\(request.method.rawValue) \(url)\(query): \(report.outcome)",
                metadata: ["cache-status": "\(report.cacheStatus)"])
        }
        return (upstream.response(stream, open), tracer == nil ? nil : stream.report.outcome)
    }

    /// Removes the stored responses for a request of this client, all variants, from memory and disk. They are gone
    /// when it returns. The files are removed on a queue of the cache, whose threads may wait for the disk.
    ///
    /// `cache.removeCachedResponse(for:)` knows only the responses of `URLSession`.
    /// - Parameters:
    ///   - request: as for `execute(_:timeout:cacheOptions:logger:)`. Its body is read only if it is part of the key,
    ///     up to 1 MB, without a limit of time.
    ///   - cacheOptions: as there. Their `keyPolicy` is part of the key.
    /// - Throws: `HTTPClientError.invalidURL` for a request that is not HTTP, or the error of its body.
    public func removeCachedResponse(
        for request: HTTPClientRequest, cacheOptions: DiskURLCache.Options? = nil
    ) async throws {
        guard let (asked, _) = try await asked(request, cacheOptions) else { throw HTTPClientError.invalidURL }
        let variant = variant(of: request)
        await cache.perform { $0.removeCachedResponse(for: asked, variant: variant) }
    }

    /// The request for the cache, and its body if it was read for the key. Nil for a request that is not HTTP.
    /// - Parameter deadline: by which there must be the head of the answer; nil if the request is not sent.
    func asked(
        _ request: HTTPClientRequest, _ cacheOptions: DiskURLCache.Options?, deadline: NIODeadline? = nil
    ) async throws -> (asked: DiskURLCache.Request, body: HTTPClientRequest.Body?)? {
        let scheme = request.url.prefix { $0 != ":" }.lowercased()
        guard scheme == "http" || scheme == "https" else { return nil }
        let isKeyed = methodsKeyedByBody.contains(request.method.rawValue)
        let gathered = isKeyed ? try await request.body?.gathered(by: deadline) : nil
        var (whole, body) = (Data?.none, request.body)
        switch gathered {
        case .whole(let buffer): (whole, body) = (Data(buffer: buffer), .bytes(buffer))
        case .tooLong(let pieces): body = .stream(pieces, length: .unknown)
        case nil: break
        }
        // A little more time than the `HTTPClient` has, so that its deadline passes first even on a busy machine: then
        // a stored response can replace the failure.
        let timeout = deadline.map { max(0, Double(($0 - .now()).nanoseconds) / 1e9) + 0.25 }
        // The certificate of a single request is not part of the key.
        let hasKnownIdentity = request.tlsConfiguration == nil && identity != .unknown
        return DiskURLCache.Request(
            method: request.method.rawValue, url: request.url, fields: request.headers.withOneCookie,
            body: whole, streamsBody: body != nil && whole == nil,
            timeoutInterval: timeout ?? 60,
            options: hasKnownIdentity ? cacheOptions : DiskURLCache.Options(storage: .never)
        ).map { ($0, body) }
    }

    /// The variant of a request. Clients that the server cannot distinguish share entries (`TLSIdentity`). A request
    /// may have a local address of its own. The stored bytes are those that the client delivers, which depend on its
    /// decompression:
    ///
    /// - A client that decodes asks for `gzip`, and decodes `gzip` and `deflate`. An origin may send other codings
    ///   unasked, which are delivered and stored as they came. `URLSession` decodes more, or fails, so that it must not
    ///   find them. If the request names codings itself, the answer is another.
    /// - A client that does not decode stores bodies as they came.
    ///
    /// `Vary: Accept-Encoding` is not enough: the cache does not see the field, which the client adds later, and an
    /// origin may send an encoded body without `Vary`.
    func variant(of request: HTTPClientRequest) -> String {
        let coding = !decodes ? "coded" : request.headers.contains(name: "Accept-Encoding") ? "own-coding" : "decoded"
        var variant = coding
        if case .named(let name) = identity { variant += " \(name)" }
        if let address = request.localAddress { variant += " from \(address)" }
        return variant
    }
}

extension HTTPClient.TracingConfiguration {
    /// A tracer that does nothing would still be given the parts of each URL.
    mutating func leaveOutTracerThatDoesNothing() {
        if tracer is NoOpTracer { tracer = nil }
    }
}
