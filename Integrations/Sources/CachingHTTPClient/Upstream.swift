import AsyncHTTPClient
import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOFoundationCompat
import NIOHTTP1
import NIOHTTPCompression
import ServiceContextModule

/// Sends one request through the `HTTPClient`, and keeps what the cache's types have no place for.
final class Upstream: DiskURLCache.Transport {
    private struct State {
        /// The HTTP version of the last answer from the network.
        var version = HTTPVersion.http1_1
        /// All hops except the last one.
        var history: [HTTPClientRequestResponse] = []
        /// The URL of the last hop.
        var url: String
    }

    private let client: HTTPClient
    private let decodes: Bool
    private let original: HTTPClientRequest
    /// The request that the cache was given.
    private let asked: DiskURLCache.Request
    private let deadline: NIODeadline
    private let logger: Logger?
    /// The caller's context, for the spans: the request is sent in a different task.
    private let context = ServiceContext.current
    private let state: NIOLockedValueBox<State>

    init(
        _ client: HTTPClient, decodes: Bool, _ original: HTTPClientRequest, asked: DiskURLCache.Request,
        deadline: NIODeadline, logger: Logger?
    ) {
        self.client = client
        self.decodes = decodes
        self.original = original
        self.asked = asked
        self.deadline = deadline
        self.logger = logger
        state = NIOLockedValueBox(State(url: asked.url))
    }

    func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
        // The client ends the process at such a URL, which may come from a server, in a redirect.
        guard request.url.hasPossibleServer else { throw HTTPClientError.invalidURL }
        let outgoing = outgoing(request)
        let response = try await ServiceContext.withValue(context) {
            try await client.execute(outgoing, deadline: deadline, logger: logger)
        }
        state.withLockedValue { $0.version = response.version }
        let head = HTTPResponseHead(version: response.version, status: response.status, headers: response.headers)
        receiver.receive(DiskURLCache.Head(head))
        var hasBody = false
        do {
            // The bytes are copied, so that the client can read the next piece into the same memory. Sharing the memory
            // was slower.
            for try await buffer in response.body {
                hasBody = true
                await receiver.receive(Data(buffer: buffer))
            }
        } catch  where head.isComplete(to: outgoing.method, hasBody: hasBody, despite: error) {
            // It is complete.
        }
    }

    /// The caller's request with the changes of the cache: conditions that it added, and fields that a redirect
    /// removed.
    private func outgoing(_ request: DiskURLCache.Request) -> HTTPClientRequest {
        var outgoing = self.request(for: request.url)
        if request.method != asked.method { outgoing.method = HTTPMethod(rawValue: request.method) }
        if request.body == nil, !request.streamsBody { outgoing.body = nil }
        outgoing.headers = HTTPHeaders(request.fields)
        if decodes, !outgoing.headers.contains(name: "Accept-Encoding") { outgoing.headers.askForGzip() }
        return outgoing
    }

    /// The request that follows a redirect; nil if the redirect is not followed.
    func redirected(
        _ head: DiskURLCache.Head, of request: DiskURLCache.Request, to next: DiskURLCache.Request
    ) -> DiskURLCache.Request? {
        // It may be impossible to send a streamed body a second time, so the caller gets the redirect.
        guard !next.streamsBody else { return nil }
        let hop = HTTPClientRequestResponse(
            request: self.request(for: request.url), responseHead: HTTPResponseHead(head, version: .http1_1))
        state.withLockedValue { state in
            state.history.append(hop)
            state.url = next.url
        }
        return next
    }

    /// The error of `HTTPClient` for redirects that the cache follows no further: because they lead back, or because
    /// there are too many of them. The last redirect was not followed, so it is not in the history.
    var tooManyRedirects: HTTPClientError {
        let (history, last) = state.withLockedValue { ($0.history, $0.url) }
        return history.contains { $0.request.url == last } ? .redirectCycleDetected : .redirectLimitReached
    }

    private func request(for url: String) -> HTTPClientRequest {
        var request = original
        guard url != asked.url else { return request }
        request.url = url
        // A client certificate is for the origin that the caller named, as in `HTTPClient`.
        if request.tlsConfiguration != nil, !Self.haveSameOrigin(url, asked.url) { request.tlsConfiguration = nil }
        return request
    }

    private static func haveSameOrigin(_ one: String, _ other: String) -> Bool {
        guard let one = URLComponents(string: one), let other = URLComponents(string: other) else { return false }
        func port(_ url: URLComponents) -> Int? { url.port ?? (url.scheme?.lowercased() == "https" ? 443 : 80) }
        return one.scheme?.lowercased() == other.scheme?.lowercased()
            && one.host?.lowercased() == other.host?.lowercased() && port(one) == port(other)
    }

    /// The answer in the types of AsyncHTTPClient.
    func response(_ stream: DiskURLCache.ResponseStream, _ open: OpenRequests.Request) -> HTTPClientResponse {
        let (version, history, url) = state.withLockedValue { ($0.version, $0.history, $0.url) }
        let head = HTTPResponseHead(stream.head, version: version)
        let last = HTTPClientRequestResponse(request: request(for: url), responseHead: head)
        return HTTPClientResponse(
            version: head.version, status: head.status, headers: head.headers,
            body: .stream(Buffers(stream: stream, request: open)),
            history: history + [last])
    }
}

/// A body in the type of AsyncHTTPClient.
private struct Buffers: AsyncSequence, AsyncIteratorProtocol, Sendable {
    let stream: DiskURLCache.ResponseStream
    let request: OpenRequests.Request

    func next() async throws -> ByteBuffer? {
        guard let piece = try await stream.next() else {
            request.end()
            return nil
        }
        return ByteBuffer(data: piece)
    }

    func makeAsyncIterator() -> Buffers { self }
}

/// A body that did not go through the cache, with the request that is open until its end.
struct OpenBody: AsyncSequence, Sendable {
    let body: HTTPClientResponse.Body
    let request: OpenRequests.Request

    struct AsyncIterator: AsyncIteratorProtocol {
        var pieces: HTTPClientResponse.Body.AsyncIterator
        let request: OpenRequests.Request

        mutating func next() async throws -> ByteBuffer? {
            guard let piece = try await pieces.next() else {
                request.end()
                return nil
            }
            return piece
        }
    }

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(pieces: body.makeAsyncIterator(), request: request) }
}

/// The body of a request whose key needs it.
enum GatheredBody: Sendable {
    case whole(ByteBuffer)
    /// It has more than `HTTPClientRequest.Body.mostGathered` bytes. The pieces are those that were read, and the rest.
    case tooLong(GatheredPieces)
}

/// The pieces of a body: first those that were gathered, then those that are still to come.
///
/// `@unchecked Sendable`: it has one reader at a time. The client reads after `gathered(by:)` has returned, and once,
/// since a body that streams is not sent again.
final class GatheredPieces: AsyncSequence, AsyncIteratorProtocol, @unchecked Sendable {
    private var gathered = ByteBuffer()
    private var rest: HTTPClientRequest.Body.AsyncIterator

    fileprivate init(_ body: HTTPClientRequest.Body) { rest = body.makeAsyncIterator() }

    fileprivate func gather(upTo limit: Int) async throws -> GatheredBody {
        while var piece = try await rest.next() {
            // What is always there does not look itself whether its reader is cancelled.
            try Task.checkCancellation()
            gathered.writeBuffer(&piece)
            if gathered.readableBytes > limit { return .tooLong(self) }
        }
        // Some bodies end when their reader is cancelled: that is not their end.
        try Task.checkCancellation()
        return .whole(gathered)
    }

    func next() async throws -> ByteBuffer? {
        guard gathered.readableBytes == 0 else {
            defer { gathered = ByteBuffer() }
            return gathered
        }
        return try await rest.next()
    }

    func makeAsyncIterator() -> GatheredPieces { self }
}

extension HTTPClientRequest.Body {
    /// The longest body that is gathered, in bytes. A server passes the bodies of its clients on, and a few of them
    /// must not fill its memory.
    static let mostGathered = 1 << 20

    /// The body for the key.
    /// - Parameter deadline: by which it must be gathered: otherwise this throws `HTTPClientError.deadlineExceeded`, as
    ///   the client does. The body is cancelled then, and waited for. Nil: there is none.
    func gathered(by deadline: NIODeadline?) async throws -> GatheredBody {
        let pieces = GatheredPieces(self)
        guard let deadline else { return try await pieces.gather(upTo: Self.mostGathered) }
        return try await withThrowingTaskGroup(of: GatheredBody.self) { group in
            group.addTask { try await pieces.gather(upTo: Self.mostGathered) }
            group.addTask {
                let remaining = (deadline - .now()).nanoseconds
                if remaining > 0 { try await Task.sleep(nanoseconds: UInt64(remaining)) }
                throw HTTPClientError.deadlineExceeded
            }
            defer { group.cancelAll() }
            guard let body = try await group.next() else { throw CancellationError() }
            return body
        }
    }
}

extension HTTPHeaders {
    /// RFC 9113 §8.2.3: the parts of a cookie, which may come in several fields, are one field in a key.
    var withOneCookie: [(name: String, value: String)] {
        let cookies = self["Cookie"]
        guard cookies.count > 1 else { return Array(self) }
        var headers = self
        headers.replaceOrAdd(name: "Cookie", value: cookies.joined(separator: "; "))
        return Array(headers)
    }
}

extension HTTPHeaders {
    /// What a client that decodes asks for. Some servers call something `deflate` that it does not decode, and a part
    /// of a coded body cannot be decoded.
    mutating func askForGzip() {
        replaceOrAdd(name: "Accept-Encoding", value: contains(name: "Range") ? "identity" : "gzip")
    }
}

extension DiskURLCache.Head {
    init(_ head: HTTPResponseHead) {
        self.init(status: Int(head.status.code), fields: Array(head.headers))
    }
}

extension HTTPResponseHead {
    fileprivate init(_ head: DiskURLCache.Head, version: HTTPVersion) {
        self.init(
            version: version, status: HTTPResponseStatus(statusCode: head.status), headers: HTTPHeaders(head.fields))
    }
}

extension String {
    /// Whether the client can take the host and the port of this URL. It ends the process at a port that is no number
    /// below 65,536, and at a host that is nothing but brackets once it is decoded, such as `%5B%5D`. By bytes, since
    /// each request asks: Foundation's search for "://" takes 40,000 instructions.
    var hasPossibleServer: Bool {
        var text = self
        return text.withUTF8 { bytes in
            guard let scheme = bytes.firstIndex(of: UInt8(ascii: ":")), bytes[scheme...].starts(with: "://".utf8) else {
                return true
            }
            // Behind user and password.
            var host = scheme + 3
            // The first one behind user, password and IPv6 address.
            var colon: Int?
            var end = scheme + 3
            while end < bytes.count, ![UInt8(ascii: "/"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains(bytes[end]) {
                switch bytes[end] {
                case UInt8(ascii: "@"): (host, colon) = (end + 1, nil)
                case UInt8(ascii: "]"): colon = nil
                case UInt8(ascii: ":"): colon = colon ?? end
                default: break
                }
                end += 1
            }
            if Self.isOfBrackets(bytes[host..<(colon ?? end)]) { return false }
            guard let colon, colon + 1 < end else { return true }
            return UInt16(String(decoding: bytes[(colon + 1)..<end], as: UTF8.self)) != nil
        }
    }

    private static func isOfBrackets(_ host: Slice<UnsafeBufferPointer<UInt8>>) -> Bool {
        // Two brackets, each as three bytes.
        guard (1...6).contains(host.count) else { return false }
        let name = String(decoding: host, as: UTF8.self).removingPercentEncoding ?? ""
        return !name.isEmpty && name.allSatisfy { $0 == "[" || $0 == "]" }
    }
}

extension HTTPResponseHead {
    /// Whether a client that decodes gives the body without its content codings: it decodes a single one, which
    /// is `gzip` or `deflate`.
    var isDecoded: Bool {
        let codings = headers[canonicalForm: "Content-Encoding"].map { $0.lowercased() }
        return codings.isEmpty || [["gzip"], ["deflate"], ["identity"]].contains(codings)
    }

    /// Whether an answer to this method is complete, although it ended with an error. If it has no content, but names a
    /// coding, the client's decompression reports one, since it finds nothing to decode.
    /// - Parameter hasBody: a piece of the body came, perhaps an empty one.
    func isComplete(to method: HTTPMethod, hasBody: Bool, despite error: any Error) -> Bool {
        let length = headers["Content-Length"]
        if method == .HEAD || status == .noContent || status == .notModified || length == ["0"] { return true }
        // Without a length, only the end of a body says that it is empty.
        return !hasBody && length.isEmpty && error as? NIOHTTPDecompression.ExtraDecompressionError == .truncatedData
    }
}
