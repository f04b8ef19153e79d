import AsyncHTTPClient
import CachingHTTPClient
import Hummingbird
import NIOCore

/// Passes a request on to an upstream, through the cache, and its answer back: see the article "A gateway".
/// - Parameter upstream: its authority, such as `api.example.com`. No client chooses it.
func pass(_ request: Request, to upstream: String, through client: CachingHTTPClient) async throws -> Response {
    var asked = HTTPRequest(method: request.method, scheme: "https", authority: upstream, path: request.head.path)
    for field in request.headers where passedOn.contains(field.name.canonicalName) { asked.headerFields.append(field) }
    // A request with a body that streams is never answered from the cache.
    let hasBody = request.method != .get && request.method != .head
    let (head, body) = try await client.execute(
        asked, body: hasBody ? .stream(request.body, length: .unknown) : nil, timeout: .seconds(10))
    // RFC 9110 §7.6.1: what `Connection` names is for the connection to the upstream only.
    let named = (head.headerFields[.connection] ?? "").lowercased().split { $0 == "," || $0 == " " }.map(String.init)
    let fields = head.headerFields.filter { field in
        !ofOneConnection.contains(field.name.canonicalName) && !named.contains(field.name.canonicalName)
    }
    return Response(status: head.status, headers: HTTPFields(fields), body: ResponseBody(asyncSequence: body))
}

/// Fields of a request that are passed on. A field for which the upstream's answer may be another has to be in its
/// `Vary`, or in the key.
private let passedOn: Set<String> = [
    "accept", "accept-encoding", "accept-language", "authorization", "content-encoding", "content-language",
    "content-type", "cookie", "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since",
    "range", "traceparent", "tracestate",
]

/// Fields of an answer that are not.
private let ofOneConnection: Set<String> = [
    "connection", "keep-alive", "proxy-authenticate", "proxy-connection", "te", "trailer", "transfer-encoding",
    "upgrade",
]
