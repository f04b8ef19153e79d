import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// The answer to a request from memory, disk, or an app's HTTP client: by the same engine as `data(for:session:)`, with the same
    /// keys, rules and events, and with a body that streams.
    ///
    /// Equal loads at the same time share one request, whatever transport they name. A load does not join one whose body has
    /// brought no bytes for `timeoutInterval` seconds. Returns when the head is known.
    /// - Parameters:
    ///   - request: the request. A method without a key is sent too, and invalidates the stored responses of its URL. The head must come in
    ///     `timeoutInterval` seconds, redirects included; how long the body may take is up to the transport.
    ///   - transport: sends the requests, also for a refresh in the background.
    ///   - variant: part of the key. Answers of different forms, such as decoded and undecoded ones, must not
    ///     have the same variant; nil is the variant of `URLSession`, which decodes.
    ///   - redirect: takes a redirect and the request that would follow. Returns the request to follow, or nil to get the redirect
    ///     itself. Without it redirects are followed.
    /// - Throws: the error of the transport, `URLError`, or `CancellationError`.
    public func load(
        _ request: URLRequest, through transport: some Transport, variant: String? = nil,
        redirect: (@Sendable (_ response: HTTPURLResponse, _ next: URLRequest) -> URLRequest?)? = nil
    ) async throws -> ResponseStream {
        try Task.checkCancellation()
        try request.requireURL()
        let reader = LoadReader(
            KeyedRequest(request, in: self, variant: variant), from: self,
            over: OpenTransport(transport: transport, keyVariant: variant), takesPieces: true,
            timeout: request.timeoutInterval, redirect: redirect)
        return ResponseStream(try await reader.head(), reader)
    }
}
