#if canImport(Darwin)
    import CoreFoundation
    import Foundation

    // Never run by the project's tests: written from Apple's documentation. What loads do by Apple's system;
    // `Linux/LoadingSystem+Linux.swift` has the same names for Foundation on Linux.

    enum LoadingSystem {
        static func setPriority(_ priority: Float, of task: URLSessionTask) { task.priority = priority }

        /// Ends an inner session when its outer one is released.
        static func end(_ inner: URLSession, with outer: URLSession) {
            outer.hold(SessionEnd(of: inner), for: NetworkSessions.shared)
        }

        static func cancel(_ task: URLSessionTask) { task.cancel() }

        static func mayAnswerRedirect(of task: URLSessionTask) -> Bool { true }

        /// A session for this library's loader; nil where a configuration that `attach(to:)` prepared makes one.
        static func makeSession(
            _ configuration: URLSessionConfiguration, cache: any CacheShell, delegate: (any URLSessionDelegate)?,
            delegateQueue: OperationQueue?
        ) -> URLSession? {
            guard configuration.identifier == nil else { return nil }
            // The loader looks up in the cache, once for each load. The system does not.
            configuration.urlCache = nil
            let session = SessionClasses.shared.makeSession { loader in
                configuration.protocolClasses = [loader] + (configuration.protocolClasses ?? [])
                return URLSession(configuration: configuration, delegate: delegate, delegateQueue: delegateQueue)
            }
            session.hold(cache, for: SessionClasses.shared)
            return session
        }
    }

    extension URLSession {
        /// Keeps an object for as long as this session exists.
        fileprivate func hold(_ object: AnyObject, for owner: AnyObject) {
            objc_setAssociatedObject(self, Unmanaged.passUnretained(owner).toOpaque(), object, .OBJC_ASSOCIATION_RETAIN)
        }

        fileprivate func held(for owner: AnyObject) -> Any? {
            objc_getAssociatedObject(self, Unmanaged.passUnretained(owner).toOpaque())
        }
    }

    /// Ends an inner session, and forgets it, when its outer session, which holds this object, is released.
    private final class SessionEnd: Sendable {
        private let session: URLSession

        init(of session: URLSession) {
            self.session = session
        }

        deinit {
            NetworkSessions.shared.sessions.withLock { sessions in
                sessions = sessions.filter { $0.value.session !== session }
            }
            session.finishTasksAndInvalidate()
        }
    }

    extension SessionLink {
        /// Nil if the session was not made for the loader.
        /// - Parameter loader: the class of the task's protocol.
        init?(_ task: URLSessionTask, loader: CachingURLProtocol.Type = CachingURLProtocol.self) {
            guard let session = SessionClasses.shared.session(of: loader) else { return nil }
            self.init(session: session, task: task)
        }

        var cache: CacheCore? { (session.held(for: SessionClasses.shared) as? any CacheShell)?.core }

        /// The system's lookup tells the protocol nothing.
        var known: CachedURLResponse? { nil }
    }

    extension ClientPort {
        /// To be called inside `startLoading`.
        convenience init(_ urlProtocol: URLProtocol, task: URLSessionTask, link: SessionLink) {
            let delegates = [task.delegate, link.session.delegate as? any URLSessionTaskDelegate]
            self.init(
                urlProtocol, task: task, session: link.session, queue: ClientThread.current(),
                delegates: delegates.compactMap { $0 }, acceptsPieces: true)
        }

        var priority: Float { task.priority }
    }

    /// The thread that called `startLoading`.
    ///
    /// `@unchecked Sendable`: constant, and the two functions used may be called from any thread.
    private final class ClientThread: ClientQueue, @unchecked Sendable {
        private let loop: CFRunLoop?
        private let modes: CFArray

        private init(_ loop: CFRunLoop?, _ modes: [String]) {
            self.loop = loop
            self.modes = modes as CFArray
        }

        /// The queue for a client whose protocol starts now, on the calling thread.
        static func current() -> any ClientQueue {
            let loop = CFRunLoopGetCurrent()
            let running = CFRunLoopCopyCurrentMode(loop)?.rawValue as String?
            let modes = ClientModes.modes(running: running, common: CFRunLoopMode.defaultMode.rawValue as String)
            guard let modes else { return DispatchQueue(label: "DiskURLCache.client", qos: .userInitiated) }
            return ClientThread(loop, modes)
        }

        func enqueue(_ work: @escaping @Sendable () -> Void) {
            CFRunLoopPerformBlock(loop, modes, work)
            CFRunLoopWakeUp(loop)
        }
    }

    // MARK: The app's delegates

    extension URLSessionDataDelegate {
        /// False if the delegate has no method for the question.
        func confirms(
            _ response: CachedURLResponse, of task: URLSessionDataTask, in session: URLSession,
            _ completion: @escaping @Sendable (CachedURLResponse?) -> Void
        ) -> Bool {
            urlSession?(session, dataTask: task, willCacheResponse: response, completionHandler: completion) != nil
        }
    }

    extension URLSessionTaskDelegate {
        /// False if the delegate has no method for the question.
        func confirms(
            _ redirect: HTTPURLResponse, to next: URLRequest, of task: URLSessionTask, in session: URLSession,
            _ completion: @escaping @Sendable (URLRequest?) -> Void
        ) -> Bool {
            urlSession?(
                session, task: task, willPerformHTTPRedirection: redirect, newRequest: next,
                completionHandler: completion) != nil
        }
    }

    extension NetworkDelegate {
        /// The inner session waits for a connection; the outer session's delegate may show that.
        func urlSession(_ session: URLSession, taskIsWaitingForConnectivity task: URLSessionTask) {
            guard let exchange = exchange(of: task), let outerTask = exchange.task else { return }
            let outer = exchange.session
            let delegates = [outerTask.delegate, outer.delegate as? any URLSessionTaskDelegate]
            outer.delegateQueue.addOperation {
                for delegate in delegates
                where delegate?.urlSession?(outer, taskIsWaitingForConnectivity: outerTask) != nil { break }
            }
        }

        /// The app's delegate answers, as in its own session: see `ChallengeRoute`.
        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            // A load that ended meanwhile needs no connection.
            guard let exchange = exchange(of: task) else {
                return completionHandler(.cancelAuthenticationChallenge, nil)
            }
            let subject = ChallengeRoute.Subject(method: challenge.protectionSpace.authenticationMethod)
            let hasProposed = challenge.proposedCredential != nil
            // The handler may be called once, from any thread.
            nonisolated(unsafe) let completionHandler = completionHandler
            let answer: @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void = { [self] in
                if ChallengeRoute.addsCredentials(subject, disposition: $0, hasProposed: hasProposed) {
                    noteCredentials(for: task.currentRequest?.url)
                }
                completionHandler($0, $1)
            }
            let (outer, outerTask) = (exchange.session, exchange.task)
            let ofTask = outerTask?.delegate
            let ofSession = outer.delegate
            outer.delegateQueue.addOperation {
                let route = ChallengeRoute(subject, .init(ofTask, ofSession))
                switch (route, outerTask) {
                case (.session, _):
                    ofSession?.urlSession?(outer, didReceive: challenge, completionHandler: answer)
                case (.task, let outerTask?):
                    ofTask?.urlSession?(outer, task: outerTask, didReceive: challenge, completionHandler: answer)
                case (.sessionForTask, let outerTask?):
                    (ofSession as? any URLSessionTaskDelegate)?.urlSession?(
                        outer, task: outerTask, didReceive: challenge, completionHandler: answer)
                default: answer(.performDefaultHandling, nil)
                }
            }
        }
    }

    extension ChallengeRoute.Methods {
        fileprivate init(_ ofTask: (any URLSessionTaskDelegate)?, _ ofSession: (any URLSessionDelegate)?) {
            session = ofSession?.urlSession(_:didReceive:completionHandler:) != nil
            task = ofTask?.urlSession(_:task:didReceive:completionHandler:) != nil
            let other = ofSession as? any URLSessionTaskDelegate
            sessionForTask = other?.urlSession(_:task:didReceive:completionHandler:) != nil
        }
    }
#endif
