#if canImport(FoundationNetworking)
    import Foundation
    import FoundationNetworking

    /// A whole load by Foundation's own protocol class, with the session's own delegate, cookies and timeouts: for
    /// uploads, downloads, streamed bodies and all that is not cached. Only looked at: an unsafe request that succeeds
    /// makes stored responses invalid (RFC 9111 §4.4), and its answer may stand for a later GET's.
    ///
    /// `@unchecked Sendable`: used on the queue on which Foundation calls protocols, only.
    final class PassThrough: NSObject, URLProtocolClient, @unchecked Sendable {
        private var native: URLProtocol?
        private let client: any URLProtocolClient
        private let cache: DiskURLCache?
        private let requestTime: Date
        /// Made when the first data or the end comes, since Foundation tells of the head only where a delegate asks.
        private lazy var representation = native?.task.flatMap {
            PostRepresentation(of: $0, requestTime: requestTime, cache: cache)
        }

        /// Nil when Foundation has no class for the request.
        init?(of outer: URLProtocol, task: URLSessionTask, link: SessionLink, cache: DiskURLCache?) {
            guard let client = outer.client,
                let nativeClass = Self.nativeClass(for: outer.request, session: link.session)
            else { return nil }
            self.client = client
            self.cache = cache
            requestTime = cache?.configuration.clock.now() ?? Date()
            super.init()
            native = nativeClass.init(task: task, cachedResponse: nil, client: self)
        }

        /// The class that would have been asked if the loader were not there: the user's other classes come first.
        private static func nativeClass(for request: URLRequest, session: URLSession?) -> URLProtocol.Type? {
            let classes =
                (session?.configuration.protocolClasses ?? [])
                + (URLSessionConfiguration.default.protocolClasses ?? [])
            for case let candidate as URLProtocol.Type in classes
            where candidate != CachingURLProtocol.self && candidate.canInit(with: request) {
                return candidate
            }
            return nil
        }

        func startLoading() {
            native?.startLoading()
        }

        func stopLoading() {
            native?.stopLoading()
            // A cancelled task hears of its end from Foundation: nothing more comes through here.
            if native?.task?.state != .suspended { native = nil }
        }

        private func invalidate() {
            guard let cache, let task = native?.task, let request = task.originalRequest, let url = request.url,
                let response = task.response as? HTTPURLResponse
            else { return }
            let urls = Invalidation.urls(
                method: RequestFacts(request).method, target: url, status: response.statusCode,
                fields: HeaderFields(response))
            for url in urls { cache.invalidate(url) }
        }

        // MARK: URLProtocolClient. The native protocol goes along: Foundation's client keeps its data there.

        func urlProtocol(
            _ protocol: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse
        ) {
            client.urlProtocol(`protocol`, wasRedirectedTo: request, redirectResponse: redirectResponse)
        }

        func urlProtocol(_ protocol: URLProtocol, cachedResponseIsValid cachedResponse: CachedURLResponse) {
            client.urlProtocol(`protocol`, cachedResponseIsValid: cachedResponse)
        }

        func urlProtocol(
            _ protocol: URLProtocol, didReceive response: URLResponse, cacheStoragePolicy policy: URLCache.StoragePolicy
        ) {
            client.urlProtocol(`protocol`, didReceive: response, cacheStoragePolicy: policy)
        }

        func urlProtocol(_ protocol: URLProtocol, didLoad data: Data) {
            representation?.append(data)
            client.urlProtocol(`protocol`, didLoad: data)
        }

        func urlProtocolDidFinishLoading(_ protocol: URLProtocol) {
            invalidate()
            representation?.store()
            client.urlProtocolDidFinishLoading(`protocol`)
            native = nil
        }

        func urlProtocol(_ protocol: URLProtocol, didFailWithError error: Swift.Error) {
            client.urlProtocol(`protocol`, didFailWithError: error)
            native = nil
        }

        func urlProtocol(_ protocol: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
            client.urlProtocol(`protocol`, didReceive: challenge)
        }

        func urlProtocol(_ protocol: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {
            client.urlProtocol(`protocol`, didCancel: challenge)
        }
    }
#endif
