import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The loader as the URL loading system sees it: callbacks in, `LoadDriver` or `PassThrough` behind.
///
/// Foundation calls one instance on one queue at a time, and the state is touched there only.
final class CachingURLProtocol: URLProtocol {
    private var driver: LoadDriver?
    private var port: ClientPort?
    #if canImport(FoundationNetworking)
        private var passThrough: PassThrough?
    #endif

    /// Puts the class in front of Foundation's for `URLSession.shared`, if no session was used yet. Done once.
    static func register() {
        _ = registration
    }

    private static let registration: Bool = URLProtocol.registerClass(CachingURLProtocol.self)

    override class func canInit(with request: URLRequest) -> Bool {
        let scheme = request.url?.scheme?.lowercased()
        return scheme == "http" || scheme == "https"
    }

    #if canImport(Darwin)
        /// Apple's system asks with the task: what is not cached stays with the system.
        override class func canInit(with task: URLSessionTask) -> Bool {
            guard let request = task.currentRequest, canInit(with: request), task is URLSessionDataTask,
                !(task is URLSessionUploadTask), let cache = DiskURLCache.cache(for: task)
            else { return false }
            return cache.key(for: request) != nil
        }
    #endif

    override class func canonicalRequest(for request: URLRequest) -> URLRequest {
        request
    }

    override func startLoading() {
        guard driver == nil else {
            port?.resume()
            return
        }
        guard let task else { return }
        let link = SessionLink(task)
        let cache = DiskURLCache.cache(for: task, link: link)
        let request = link.effectiveRequest(task.originalRequest ?? request)
        #if canImport(FoundationNetworking)
            if let passThrough {
                passThrough.startLoading()
                return
            }
            // The body of an upload from memory is invisible here; a download needs Foundation's own temporary file.
            let isHandled = task is URLSessionDataTask && !(task is URLSessionUploadTask)
            guard isHandled, let cache, cache.key(for: request) != nil else {
                passThrough = PassThrough(of: self, task: task, link: link, cache: cache)
                passThrough?.startLoading()
                return
            }
        #else
            guard let cache else { return }
        #endif
        let port = ClientPort(self, queue: link.workQueue)
        let driver = LoadDriver(cache: cache, request: request, task: task, link: link, client: port)
        self.port = port
        self.driver = driver
        driver.start(with: cachedResponse as? LookupResult)
    }

    override func stopLoading() {
        #if canImport(FoundationNetworking)
            if let passThrough {
                passThrough.stopLoading()
                return
            }
            if task?.state == .suspended {
                port?.pause()
                return
            }
        #endif
        driver?.cancel()
    }
}
