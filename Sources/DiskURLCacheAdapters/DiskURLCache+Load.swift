import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// The answer to a request from memory, disk, or an app's HTTP client: by the same engine as `data(for:session:)`,
    /// with the same keys, rules and events, and with a body that streams.
    ///
    /// Equal loads at the same time share one request, whatever transport they name. A load does not join one whose
    /// body has brought no bytes for `timeoutInterval` seconds. Returns when the head is known.
    /// - Parameters:
    ///   - request: the request. A method without a key is sent too, and invalidates the stored responses of its URL.
    ///     The head must come in `timeoutInterval` seconds, redirects included; how long the body may take is up to the
    ///     transport.
    ///   - transport: sends the requests, also for a refresh in the background.
    ///   - variant: part of the key. Answers of different forms, such as decoded and undecoded ones, must not
    ///     have the same variant; nil is the variant of `URLSession`, which decodes.
    ///   - redirect: takes a redirect, the request that it answers, and the request that would follow. Returns the
    ///     request to follow, or nil to get the redirect itself. Without it redirects are followed.
    /// - Throws: the error of the transport, `URLError`, or `CancellationError`.
    public func load(
        _ request: Request, through transport: some Transport, variant: String? = nil,
        redirect: (@Sendable (_ head: Head, _ request: Request, _ next: Request) -> Request?)? = nil
    ) async throws -> ResponseStream {
        try Task.checkCancellation()
        var decides: CacheRedirect?
        if let redirect { decides = { head, request, next in redirect(Head(head), request, next) } }
        let reader = reader(
            of: request, over: OpenTransport(transport: transport, keyVariant: variant), redirect: decides)
        return ResponseStream(try await reader.head(), reader)
    }

    /// The same for Foundation's request.
    public func load(
        _ request: URLRequest, through transport: some Transport, variant: String? = nil,
        redirect: (@Sendable (_ head: Head, _ request: Request, _ next: Request) -> Request?)? = nil
    ) async throws -> ResponseStream {
        try request.requireURL()
        return try await load(Request(request), through: transport, variant: variant, redirect: redirect)
    }
}
