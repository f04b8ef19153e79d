#if canImport(FoundationNetworking)
    import Foundation

    /// A cached response that builds its `HTTPURLResponse` when it is first needed: that costs more than reading a
    /// small record, and many callers want only the body. A body in a file is read when it is needed, too. It equals a
    /// response that was built at once.
    ///
    /// Not used on Apple platforms: there the accessors are in Objective-C, and the system may not call an override.
    final class LazyCachedURLResponse: CachedURLResponse, @unchecked Sendable {
        // @unchecked: the superclass is declared Sendable by Foundation; `built` is reached only while this object's
        // `SharedLock` is held, and the rest is constant.
        private let head: EntryMetadata.Response
        private let text: String?
        private let requestedURL: URL
        private let body: (@Sendable () -> Data)?
        @exclusivity(unchecked) private var built: URLResponse?

        /// The response that the superclass gets.
        static let placeholder = URLResponse(
            url: URL(fileURLWithPath: "/"), mimeType: nil, expectedContentLength: 0, textEncodingName: nil)

        init(
            head: EntryMetadata.Response, url text: String?, requestedURL: URL, data: Data,
            later body: (@Sendable () -> Data)? = nil, userInfo: [AnyHashable: Any]?,
            storagePolicy: URLCache.StoragePolicy
        ) {
            self.body = body
            self.head = head
            self.text = text
            self.requestedURL = requestedURL
            super.init(response: Self.placeholder, data: data, userInfo: userInfo, storagePolicy: storagePolicy)
        }

        /// Each call reads the file.
        override var data: Data { body?() ?? super.data }

        override var response: URLResponse {
            SharedLock.once(of: self, get: { built }, make: build, set: { built = $0 })
        }

        private func build() -> URLResponse {
            // Nearly always the response has the requested URL, so that no URL has to be parsed.
            let isRequested = text == requestedURL.absoluteString && requestedURL.baseURL == nil
            return head.urlResponse(
                url: isRequested ? requestedURL : text.flatMap { URL(string: $0) } ?? requestedURL)
        }
    }
#endif
