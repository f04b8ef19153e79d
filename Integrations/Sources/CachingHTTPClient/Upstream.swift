import AsyncHTTPClient
import DiskURLCache
import DiskURLCacheAdapters
import Foundation
import Logging
import NIOConcurrencyHelpers
import NIOCore
import NIOFoundationCompat
import NIOHTTP1
import ServiceContextModule

/// The network of one request: the `HTTPClient`, and what the cache's values do not hold.
final class Upstream: DiskURLCache.Transport {
    private struct State {
        /// That of the last answer of the network.
        var version = HTTPVersion.http1_1
        /// The hops before the last.
        var history: [HTTPClientRequestResponse] = []
        /// Of the last hop.
        var url: String
        /// A redirect led to a request that was sent before.
        var isCycle = false
    }

    private let client: HTTPClient
    private let original: HTTPClientRequest
    /// The request as the cache was given it.
    private let asked: DiskURLCache.Request
    private let deadline: NIODeadline
    private let logger: Logger?
    /// Of the caller, for the spans of what is sent: it is sent by another task.
    private let context = ServiceContext.current
    private let state: NIOLockedValueBox<State>

    init(
        _ client: HTTPClient, _ original: HTTPClientRequest, asked: DiskURLCache.Request, deadline: NIODeadline,
        logger: Logger?
    ) {
        self.client = client
        self.original = original
        self.asked = asked
        self.deadline = deadline
        self.logger = logger
        state = NIOLockedValueBox(State(url: asked.url))
    }

    func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
        let outgoing = outgoing(request)
        let response = try await ServiceContext.withValue(context) {
            try await client.execute(outgoing, deadline: deadline, logger: logger)
        }
        state.withLockedValue { $0.version = response.version }
        receiver.receive(DiskURLCache.Head(status: Int(response.status.code), fields: Array(response.headers)))
        do {
            // Copied: the client reads the next piece into the same memory then. To share it was slower.
            for try await buffer in response.body { await receiver.receive(Data(buffer: buffer)) }
        } catch  where request.method == "HEAD" || [204, 304].contains(response.status.code) {
            // Such an answer is whole with its head. The client's decompression fails those that name a coding: it
            // finds nothing to decode.
        }
    }

    /// The caller's own request, with what the cache changed: conditions that it added, what a redirect took away.
    private func outgoing(_ request: DiskURLCache.Request) -> HTTPClientRequest {
        var outgoing = self.request(for: request.url)
        if request.method != asked.method { outgoing.method = HTTPMethod(rawValue: request.method) }
        if request.body == nil, !request.streamsBody { outgoing.body = nil }
        outgoing.headers = HTTPHeaders(request.fields)
        return outgoing
    }

    /// The request that follows a redirect, nil for one that is not followed.
    func redirected(
        _ head: DiskURLCache.Head, of request: DiskURLCache.Request, to next: DiskURLCache.Request
    ) -> DiskURLCache.Request? {
        // A body that streams may be one that can be sent only once: the caller gets the redirect.
        guard !next.streamsBody else { return nil }
        var next = next
        let (from, to) = (URL(string: request.url), URL(string: next.url))
        if (from?.scheme, from?.host, from?.port) != (to?.scheme, to?.host, to?.port) {
            next.fields.removeAll { ["host", "origin", "proxy-authorization"].contains($0.name.lowercased()) }
        }
        let hop = HTTPClientRequestResponse(
            request: self.request(for: request.url), responseHead: HTTPResponseHead(head, version: .http1_1))
        let isCycle = state.withLockedValue { state in
            state.history.append(hop)
            // A redirect that changes the method, after a POST, may lead to the same URL once.
            state.isCycle =
                next.method == original.method.rawValue && state.history.contains { $0.request.url == next.url }
            if !state.isCycle { state.url = next.url }
            return state.isCycle
        }
        return isCycle ? nil : next
    }

    /// Whether the answer is a redirect that was not followed since it leads back.
    var isCycle: Bool { state.withLockedValue { $0.isCycle } }

    private func request(for url: String) -> HTTPClientRequest {
        var request = original
        if url != asked.url { request.url = url }
        return request
    }

    /// The answer in the client's own types.
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

/// A body in the client's own type.
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

extension HTTPResponseHead {
    fileprivate init(_ head: DiskURLCache.Head, version: HTTPVersion) {
        self.init(
            version: version, status: HTTPResponseStatus(statusCode: head.status), headers: HTTPHeaders(head.fields))
    }
}
