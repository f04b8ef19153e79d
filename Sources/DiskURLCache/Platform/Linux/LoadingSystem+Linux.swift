#if canImport(FoundationNetworking)
    import Foundation

    // What loads do by Foundation on Linux. `Apple/LoadingSystem+Apple.swift` has the same names for Apple's system.

    enum LoadingSystem {
        /// Foundation does not use the priority, and crashes when it is read on the queue that calls protocols.
        static func setPriority(_ priority: Float, of task: URLSessionTask) {}

        /// Makes `URLSession.shared` use the loader: see `SharedSession`.
        static func serveSharedSession(
            for cache: URLCache, attach: @escaping @Sendable (URLSessionConfiguration) -> Void
        ) {
            CachingURLProtocol.register()
            SharedSession.serve(cache, attach: attach)
        }

        /// The system tells no program that memory runs short.
        static func memoryPressure(_ relieve: @escaping @Sendable () -> Void) -> (any DispatchSourceProtocol)? { nil }

        /// Returns when Foundation has taken note of the cancellation. From Swift 6.4 on, `cancel()` returns before
        /// that; `resume()`, which has no effect on a task that is cancelled or has ended, waits for it.
        static func cancel(_ task: URLSessionTask) {
            task.cancel()
            task.resume()
        }

        /// A serial queue. Foundation puts each piece of a body into it and does not pause the transfer, so a queue
        /// that is slower than the network would fill the memory.
        static func makeDelegateQueue() -> OperationQueue { SerialQueue() }

        /// Foundation crashes at the answer to a redirect for a task that was cancelled meanwhile. Cancellations come
        /// on this queue, too, so none can come in between.
        static func mayAnswerRedirect(of task: URLSessionTask) -> Bool { task.state == .running }

        /// Whether the loader serves the sessions of `makeSession`.
        static func canReplaceNetwork(_ platform: Platform) -> Bool { TaskSession.isReadable }

        /// A session for this library's loader; nil on other systems, which tests imitate.
        /// - Parameter configuration: as `attach(to:)` prepared it.
        static func makeSession(
            _ configuration: URLSessionConfiguration, cache: any CacheShell, delegate: (any URLSessionDelegate)?,
            delegateQueue: OperationQueue?
        ) -> URLSession? {
            guard cache.core.configuration.platform.attachesLoader else { return nil }
            return LoaderSession(configuration: configuration, delegate: delegate, delegateQueue: delegateQueue)
        }

        static func workQueue(of session: URLSession) -> DispatchQueue? { TaskSession.workQueue(of: session) }
    }

    /// An operation queue that is a dispatch queue: an operation of Foundation's costs a worker's wake-up, more than it
    /// takes to receive the piece of a body that it delivers.
    private final class SerialQueue: OperationQueue, @unchecked Sendable {
        // @unchecked: its only state of its own is a constant.
        private let queue = DispatchQueue(label: "DiskURLCache.delegate", qos: .userInitiated)

        override init() {
            super.init()
            maxConcurrentOperationCount = 1
        }

        override func addOperation(_ block: @escaping () -> Void) {
            // It is called once, on the queue, as Foundation would call it.
            nonisolated(unsafe) let block = block
            queue.async { block() }
        }
    }

    extension SessionLink {
        /// Nil if nothing is known of the task: see `TaskSession`.
        init?(_ task: URLSessionTask) {
            if let note = NotedTasks.shared.note(of: task), let outer = note.outer, let session = outer.session {
                self.init(
                    session: session, task: task, hasHandler: note.hasHandler, cookie: note.cookie, outer: outer)
            } else {
                guard let (session, isAsync) = TaskSession.origin(of: task) else { return nil }
                self.init(session: session, task: task, isAsync: isAsync)
            }
        }

        /// The cache of the session.
        var cache: CacheCore? { (session.configuration.urlCache as? any CacheShell)?.core }

        /// Who gets the body of the task's answer. Nil if it cannot be read. Called on the work queue.
        var audience: TaskSession.Audience? {
            guard let hasHandler else {
                return task.flatMap { TaskSession.audience(of: $0, in: session, isAsync: isAsync) }
            }
            return hasHandler || session.delegate == nil ? .completionHandler(taskDelegate: nil) : .delegate
        }

        /// For the task's protocol, if that is the loader: see `KnownTask`. Nil if a class of the user may serve the
        /// task instead, and for a task that was noted: its protocol finds the note.
        var known: CachedURLResponse? {
            guard hasHandler == nil, let first = configuration.protocolClasses?.first,
                CachingURLProtocol.isLoader(first)
            else { return nil }
            return KnownTask(self)
        }
    }

    extension ClientPort {
        /// To be called inside `startLoading`. Nil for a task whose client can be called on an unknown queue only.
        convenience init?(_ urlProtocol: URLProtocol, task: URLSessionTask, link: SessionLink) {
            guard let queue = link.workQueue else { return nil }
            let session = link.session
            let audience = link.audience
            var acceptsPieces = false
            if case .delegate? = audience { acceptsPieces = session.delegate is any URLSessionDataDelegate }
            var passesPiece: (@Sendable (Data) -> Void)?
            // The client reports the head to the delegate of `data(for:delegate:)`, and keeps the body to itself.
            if case .completionHandler(let delegate?)? = audience, let dataTask = task as? URLSessionDataTask {
                passesPiece = { delegate.urlSession(session, dataTask: dataTask, didReceive: $0) }
            }
            self.init(
                urlProtocol, task: task, session: session, queue: queue, delegates: task.delegate.map { [$0] } ?? [],
                acceptsPieces: acceptsPieces, passesPiece: passesPiece)
        }
    }

    extension URLSessionDataDelegate {
        /// False if the delegate has no method for the question.
        func confirms(
            _ response: CachedURLResponse, of task: URLSessionDataTask, in session: URLSession,
            _ completion: @escaping @Sendable (CachedURLResponse?) -> Void
        ) -> Bool {
            urlSession(session, dataTask: task, willCacheResponse: response, completionHandler: completion)
            return true
        }
    }

    extension URLSessionTaskDelegate {
        /// False if the delegate has no method for the question.
        func confirms(
            _ redirect: HTTPURLResponse, to next: URLRequest, of task: URLSessionTask, in session: URLSession,
            _ completion: @escaping @Sendable (URLRequest?) -> Void
        ) -> Bool {
            urlSession(
                session, task: task, willPerformHTTPRedirection: redirect, newRequest: next,
                completionHandler: completion)
            return true
        }
    }

    extension NetworkDelegate {
        /// A 401 is delivered as it is: the outer session then asks its delegate for credentials and repeats the
        /// request.
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            end(task, nil)
            completionHandler(.cancelAuthenticationChallenge, nil)
        }
    }
#endif
