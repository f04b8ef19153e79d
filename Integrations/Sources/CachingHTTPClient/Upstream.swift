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

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The network of one request: the `HTTPClient`, and what `URLRequest` and `HTTPURLResponse` cannot hold.
final class Upstream: DiskURLCache.Transport {
    private struct State {
        /// That of the last answer of the network.
        var version = HTTPVersion.http1_1
        /// The hops before the last.
        var history: [HTTPClientRequestResponse] = []
        /// A redirect led to a request that was sent before.
        var isCycle = false
    }

    private let client: HTTPClient
    private let original: HTTPClientRequest
    /// The body was gathered for the key, so it can be sent again.
    private let hasGatheredBody: Bool
    /// The request as the cache was given it.
    private let asked: (url: URL?, fields: [String: String])
    private let deadline: NIODeadline
    private let logger: Logger?
    /// Of the caller, for the spans of what is sent: it is sent by another task.
    private let context = ServiceContext.current
    private let state = NIOLockedValueBox(State())

    init(
        _ client: HTTPClient, _ original: HTTPClientRequest, asked: URLRequest, deadline: NIODeadline, logger: Logger?
    ) {
        self.client = client
        self.original = original
        self.asked = (asked.url, asked.allHTTPHeaderFields ?? [:])
        hasGatheredBody = asked.httpBody != nil
        self.deadline = deadline
        self.logger = logger
    }

    func send(_ request: URLRequest, to receiver: DiskURLCache.Receiver) async throws {
        let outgoing = outgoing(request)
        let response = try await ServiceContext.withValue(context) {
            try await client.execute(outgoing, deadline: deadline, logger: logger)
        }
        state.withLockedValue { $0.version = response.version }
        receiver.receive(DiskURLCache.Head(status: Int(response.status.code), fields: Array(response.headers)))
        do {
            // Copied: the client reads the next piece into the same memory then. To share it was slower.
            for try await buffer in response.body { await receiver.receive(Data(buffer: buffer)) }
        } catch  where request.httpMethod == "HEAD" || [204, 304].contains(response.status.code) {
            // Such an answer is whole with its head. The client's decompression fails those that name a coding: it finds nothing to decode.
        }
    }

    /// The caller's own request, with what the cache changed: conditions that it added, credentials that a redirect took away.
    private func outgoing(_ request: URLRequest) -> HTTPClientRequest {
        var outgoing = original
        if let url = request.url, url != asked.url { outgoing.url = url.absoluteString }
        if let method = request.httpMethod { outgoing.method = HTTPMethod(rawValue: method) }
        if !request.hasBody { outgoing.body = nil }
        let fields = request.allHTTPHeaderFields ?? [:]
        for (name, value) in fields where asked.fields[name] != value {
            outgoing.headers.replaceOrAdd(name: name, value: value)
        }
        for name in asked.fields.keys where fields[name] == nil { outgoing.headers.remove(name: name) }
        return outgoing
    }

    /// The request that follows a redirect, nil for one that is not followed.
    func redirected(_ response: HTTPURLResponse, to next: URLRequest) -> URLRequest? {
        // A body that streams can be sent once, and nobody can tell which do: the redirect is the answer then.
        guard !next.hasBody || hasGatheredBody else { return nil }
        var next = next
        if (response.url?.scheme, response.url?.host, response.url?.port)
            != (next.url?.scheme, next.url?.host, next.url?.port)
        {
            for name in ["Host", "Origin", "Proxy-Authorization"] { next.setValue(nil, forHTTPHeaderField: name) }
        }
        let hop = HTTPClientRequestResponse(
            request: request(for: response.url), responseHead: HTTPResponseHead(response))
        let isCycle = state.withLockedValue { state in
            state.history.append(hop)
            let target = next.url?.absoluteString ?? ""
            // A redirect that changes the method, after a POST, may lead to the same URL once.
            state.isCycle =
                next.httpMethod == original.method.rawValue && state.history.contains { $0.request.url == target }
            return state.isCycle
        }
        return isCycle ? nil : next
    }

    /// Whether the answer is a redirect that was not followed since it leads back.
    var isCycle: Bool { state.withLockedValue { $0.isCycle } }

    private func request(for url: URL?) -> HTTPClientRequest {
        var request = original
        if let url, url != asked.url { request.url = url.absoluteString }
        return request
    }

    /// The answer in the client's own types.
    func response(_ stream: DiskURLCache.ResponseStream, _ open: OpenRequests.Request) -> HTTPClientResponse {
        let (version, history) = state.withLockedValue { ($0.version, $0.history) }
        let answered = stream.head
        let head = HTTPResponseHead(
            version: version, status: HTTPResponseStatus(statusCode: answered.status),
            headers: HTTPHeaders(answered.fields))
        let last = HTTPClientRequestResponse(request: request(for: stream.url), responseHead: head)
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

extension URLRequest {
    /// What it is, the `HTTPClientRequest` knows; a redirect may have taken it away.
    fileprivate var hasBody: Bool { httpBody != nil || httpBodyStream != nil }
}

extension HTTPHeaders {
    /// Each name once, values of one name joined (RFC 9110 §5.3).
    var combined: [(String, String)] {
        var combined: [(name: String, value: String)] = []
        combined.reserveCapacity(count)
        var places: [String: Int] = [:]
        for (name, value) in self {
            if let place = places[name.lowercased()] {
                // RFC 9110 §5.3, RFC 9113 §8.2.3: a cookie's parts are joined in a way of their own.
                combined[place].value += (name.lowercased() == "cookie" ? "; " : ", ") + value
            } else {
                places[name.lowercased()] = combined.count
                combined.append((name, value))
            }
        }
        return combined
    }
}

extension HTTPResponseHead {
    fileprivate init(_ response: HTTPURLResponse) {
        var headers = HTTPHeaders()
        headers.reserveCapacity(response.allHeaderFields.count)
        for (name, value) in response.allHeaderFields {
            if let name = name as? String, let value = value as? String { headers.add(name: name, value: value) }
        }
        self.init(version: .http1_1, status: HTTPResponseStatus(statusCode: response.statusCode), headers: headers)
    }
}
