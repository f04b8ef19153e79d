#if canImport(Darwin)
    import Foundation

    // Never run by the project's tests: written from Apple's documentation.

    /// The protocol class of the loader: it passes the system's callbacks on to a `LoadDriver`.
    ///
    /// The system may start an instance on one thread and stop it on another at the same time. So the state is behind a
    /// lock.
    class CachingURLProtocol: URLProtocol {
        private struct State {
            var driver: LoadDriver?
            var isStopped = false
        }

        private let state = Mutex(State())

        /// The class by which the session is known; each subclass names itself. Not by `type(of: self)`: if a class was
        /// made at run time, that gives its superclass.
        var loader: CachingURLProtocol.Type { CachingURLProtocol.self }

        /// One line, however many loads there are.
        private static let noteOfUnknownSession: Void =
            SystemLog.warn("the system loads without the cache: makeSession did not make the session of a load.")

        /// A load without a task has no session that could be known.
        override class func canInit(with request: URLRequest) -> Bool { false }

        /// The system loads the tasks that are not cached, in their own session and with its delegate.
        override class func canInit(with task: URLSessionTask) -> Bool {
            guard let link = SessionLink(task, loader: self) else {
                _ = noteOfUnknownSession
                return false
            }
            guard let request = task.currentRequest else { return false }
            return LoaderChoice.takes(
                link.effectiveRequest(LoaderChoice.sent(request, original: task.originalRequest)),
                isDataTask: task is URLSessionDataTask && !(task is URLSessionUploadTask), cache: link.cache)
        }

        override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

        override func startLoading() {
            guard let task, var link = SessionLink(task, loader: loader), let cache = link.cache else { return fail() }
            let sent = LoaderChoice.sent(request, original: task.originalRequest)
            let keyed = cache.resolve(
                link.withCookies(DiskURLCache.Request(link.effectiveRequest(sent))), variant: link.keyVariant)
            let port = ClientPort(self, task: task, link: link)
            let beginning = LoadBeginning(
                keyed, in: cache, streams: port.acceptsPieces, confirmsStorage: port.confirmsStorage)
            // The client is called from one queue, which need not be the one of this thread.
            let driver = beginning.go(over: link, to: port, at: .network)
            let isStopped = state.withLock { state in
                state.driver = driver
                return state.isStopped
            }
            if isStopped { driver?.cancel() }
        }

        /// Not expected: `canInit(with:)` has found the session, and a session lives as long as its tasks. The load
        /// fails, since another session would not ask the app's delegate whether the server is to be trusted.
        private func fail() {
            SystemLog.warn("a load failed: its session, which was known before, is not known any more.")
            client?.urlProtocol(self, didFailWithError: URLError(.unknown))
        }

        override func stopLoading() { cancelLoad() }

        /// Nobody waits for the answer any more.
        func cancelLoad() {
            let driver = state.withLock { state in
                state.isStopped = true
                return state.driver
            }
            driver?.cancel()
        }
    }
#endif
