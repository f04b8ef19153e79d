import AsyncHTTPClient
import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import NIOConcurrencyHelpers
import NIOCore
import NIOFoundationCompat
import NIOHTTP1
import NIOHTTPCompression
import NIOPosix
import NIOSSL

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sends the requests of a session through an `HTTPClient`, which belongs to it.
///
/// The client calls back, instead of being awaited as by `CachingHTTPClient`: a session has no task to go on with, so
/// each task that is awaited here would wake two threads more before the answer is there.
final class SessionUpstream: DiskURLCache.CallbackTransport {
    fileprivate let client: HTTPClient
    /// Calls back for all requests, and has their connections if it can: an answer then changes no thread before the
    /// cache has it. `URLSession` itself has one queue for all, so one event loop is no bottleneck.
    fileprivate let eventLoop: any EventLoop

    init(_ client: HTTPClient, on eventLoop: any EventLoop) {
        self.client = client
        self.eventLoop = eventLoop
    }

    deinit {
        // Not waited for: a failure leaves nothing that could be mended.
        client.shutdown { _ in }
    }

    func start(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) -> @Sendable () -> Void {
        do {
            // The client ends the process at such a URL.
            guard request.url.hasPossibleServer else { throw HTTPClientError.invalidURL }
            var outgoing = try HTTPClient.Request(
                url: request.url, method: HTTPMethod(rawValue: request.method),
                body: request.body.flatMap { $0.isEmpty ? nil : .data($0) })
            outgoing.headers = Self.headers(of: request, to: outgoing)
            let exchange = ClientExchange(outgoing, through: self, receiver)
            // From another thread the client would hand its work to the event loop in several parts, each of which can
            // wake it.
            eventLoop.execute { exchange.send() }
            return { exchange.cancel() }
        } catch {
            receiver.finish(throwing: SessionErrors.urlError(error, hasHead: false))
            return {}
        }
    }

    private static func headers(of request: DiskURLCache.Request, to server: HTTPClient.Request) -> HTTPHeaders {
        var fields = request.fields
        if request["Host"] == nil {
            // The client would add it last. It should be the first (RFC 9110 §7.2), and some servers rely on that.
            let isUsualPort = server.port == (server.useTLS ? 443 : 80)
            fields.insert(("Host", isUsualPort ? server.host : "\(server.host):\(server.port)"), at: 0)
        }
        var headers = HTTPHeaders(fields)
        // The client decodes no others.
        let codings = headers[canonicalForm: "Accept-Encoding"].map { $0.lowercased() }
        if codings.isEmpty || !codings.allSatisfy(["gzip", "deflate", "identity"].contains) { headers.askForGzip() }
        return headers
    }
}

/// One request and its answer, which the client reports on the event loop of the session.
private final class ClientExchange: HTTPClientResponseDelegate {
    private struct State {
        var isFirstAttempt = true
        var task: HTTPClient.Task<Void>?
        var isCancelled = false
        var head: HTTPResponseHead?
        /// A piece of the body came, perhaps an empty one.
        var hasBody = false
    }

    /// RFC 9110 §9.2.2, and `QUERY` (RFC 10008).
    private static let idempotentMethods: [HTTPMethod] = [
        .GET, .HEAD, .OPTIONS, .TRACE, .PUT, .DELETE, .RAW(value: "QUERY"),
    ]

    private let state = NIOLockedValueBox(State())
    private let request: HTTPClient.Request
    /// Kept until the end, since a client that is shut down cancels its requests.
    private let upstream: SessionUpstream
    private let receiver: DiskURLCache.Receiver

    init(_ request: HTTPClient.Request, through upstream: SessionUpstream, _ receiver: DiskURLCache.Receiver) {
        self.request = request
        self.upstream = upstream
        self.receiver = receiver
    }

    func send() {
        let task = upstream.client.execute(
            request: request, delegate: self, eventLoop: .delegate(on: upstream.eventLoop))
        let isCancelled = state.withLockedValue { state in
            state.task = task
            return state.isCancelled
        }
        // The end of the task, and not a call of the delegate, is the end of the answer: some errors come only there.
        task.futureResult.whenComplete { [self] in end($0) }
        if isCancelled { task.cancel() }
    }

    func cancel() {
        let task = state.withLockedValue { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }

    // MARK: From the client

    func didReceiveHead(task: HTTPClient.Task<Void>, _ head: HTTPResponseHead) -> EventLoopFuture<Void> {
        state.withLockedValue { $0.head = head }
        receiver.receive(DiskURLCache.Head(head))
        return task.eventLoop.makeSucceededVoidFuture()
    }

    func didReceiveBodyPart(task: HTTPClient.Task<Void>, _ buffer: ByteBuffer) -> EventLoopFuture<Void> {
        let undecoded = state.withLockedValue { state in
            defer { state.hasBody = true }
            return state.hasBody || state.head?.isDecoded == true ? nil : state.head
        }
        // As Foundation does. It would be stored where clients that decode look for it.
        if let undecoded { return task.eventLoop.makeFailedFuture(UndecodedBody(undecoded)) }
        let promise = task.eventLoop.makePromise(of: Void.self)
        receiver.receive(Data(buffer: buffer)) { promise.succeed(()) }
        return promise.futureResult
    }

    func didFinishRequest(task: HTTPClient.Task<Void>) {}

    private func end(_ result: Result<Void, any Error>) {
        guard case .failure(let error) = result else { return receiver.finish() }
        let (head, hasBody) = state.withLockedValue { ($0.head, $0.hasBody) }
        if let head {
            let isComplete = head.isComplete(to: request.method, hasBody: hasBody, despite: error)
            return receiver.finish(throwing: isComplete ? nil : SessionErrors.urlError(error, hasHead: true))
        }
        if isSentAgain(after: error) { return send() }
        receiver.finish(throwing: SessionErrors.urlError(error, hasHead: false))
    }

    /// A request that may be sent twice is, if the connection ended before the answer: it may have been one that the
    /// server was about to close (RFC 9112 §9.3.1).
    private func isSentAgain(after error: any Error) -> Bool {
        guard Self.idempotentMethods.contains(request.method), SessionErrors.isEndOfConnection(error) else {
            return false
        }
        return state.withLockedValue { state in
            guard state.isFirstAttempt, !state.isCancelled else { return false }
            state.isFirstAttempt = false
            return true
        }
    }
}

/// A body in a content coding that the client does not decode.
private struct UndecodedBody: Error, CustomStringConvertible {
    let description: String

    init(_ head: HTTPResponseHead) {
        let coding = head.headers["Content-Encoding"].joined(separator: ", ")
        description = "AsyncHTTPClient does not decode the Content-Encoding \(coding), for which it did not ask."
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
        case is UndecodedBody: return .cannotDecodeContentData
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
