import DiskURLCache
import Foundation

extension DiskURLCache {
    /// Answers a request from memory, from disk, or through an app's HTTP client. The engine, keys, rules and events
    /// are those of `bytes(for:fallback:session:progress:)`, and so is the stream: `write(to:)` makes a file of it.
    ///
    /// Equal loads at the same time share one request, whatever their transports are. A load waits for another one for
    /// at most half of its `timeoutInterval`, and 30 seconds. Returns when the head is known.
    /// - Parameters:
    ///   - request: the request. If its method is not cached, it is sent, and the stored responses of its URL are
    ///     removed if the method is not safe. The head must arrive within `timeoutInterval` seconds, redirects
    ///     included; how long the body may take is up to the transport.
    ///   - transport: sends the requests, also for a refresh in the background.
    ///   - variant: part of the key. Clients that deliver bodies in different forms, such as decoded and not decoded,
    ///     must have different variants; nil is the variant of `URLSession`, which decodes.
    ///   - progress: as of `bytes(for:fallback:session:progress:)`.
    ///   - redirect: called with a redirect, the request that it answers, and the request that would follow. Returns
    ///     the request to follow, or nil to deliver the redirect itself. Without this closure redirects are followed.
    /// - Throws: the error of the transport, `URLError`, or `CancellationError`.
    public func load(
        _ request: Request, through transport: some CallbackTransport, variant: String? = nil,
        progress: Progress? = nil,
        redirect: (@Sendable (_ head: Head, _ request: Request, _ next: Request) -> Request?)? = nil
    ) async throws -> ResponseStream {
        try Task.checkCancellation()
        var decides: CacheRedirect?
        if let redirect { decides = { head, request, next in redirect(Head(head), request, next) } }
        let reader = reader(
            of: request, over: OpenTransport(transport, keyVariant: variant), redirect: decides)
        return try await ResponseStream(reader, progress: progress)
    }

    /// The same for a `URLRequest`.
    public func load(
        _ request: URLRequest, through transport: some CallbackTransport, variant: String? = nil,
        progress: Progress? = nil,
        redirect: (@Sendable (_ head: Head, _ request: Request, _ next: Request) -> Request?)? = nil
    ) async throws -> ResponseStream {
        try request.requireURL()
        return try await load(
            Request(request), through: transport, variant: variant, progress: progress, redirect: redirect)
    }

    /// Removes the stored responses for a request of `load(_:through:variant:progress:redirect:)`, all that it could be
    /// answered with, from memory and disk before it returns. Removes files on the caller's thread; if the disk fails,
    /// an event says so.
    /// - Parameters:
    ///   - request: the request.
    ///   - variant: the variant with which it is loaded.
    public func removeCachedResponse(for request: Request, variant: String? = nil) {
        core.remove(request, variant: variant)
    }
}
