#if canImport(Darwin)
    import CoreFoundation
    import Foundation

    // Never run by the project's tests: written from Apple's documentation. What loads do by Apple's system;
    // `Linux/LoadingSystem+Linux.swift` has the same names for Foundation on Linux.

    enum LoadingSystem {
        static func setPriority(_ priority: Float, of task: URLSessionTask) { task.priority = priority }

        /// The system's loader serves it.
        static func serveSharedSession(for _: URLCache, attach _: @escaping @Sendable (URLSessionConfiguration) -> Void)
        {}

        /// Calls a function when memory runs short, until the source is cancelled.
        static func memoryPressure(_ relieve: @escaping @Sendable () -> Void) -> (any DispatchSourceProtocol)? {
            let source = DispatchSource.makeMemoryPressureSource(eventMask: [.warning, .critical], queue: .global())
            source.setEventHandler(handler: relieve)
            source.activate()
            return source
        }

        static func cancel(_ task: URLSessionTask) { task.cancel() }

        static func makeDelegateQueue() -> OperationQueue {
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = 1
            queue.qualityOfService = .userInitiated
            return queue
        }

        static func mayAnswerRedirect(of task: URLSessionTask) -> Bool { true }

        /// Whether the loader serves the sessions of `makeSession`.
        static func canReplaceNetwork(_ platform: Platform) -> Bool { platform.makesSessionClasses }

        /// A session for this library's loader; nil where a configuration that `attach(to:)` prepared makes one.
        static func makeSession(
            _ configuration: URLSessionConfiguration, cache: any CacheShell, delegate: (any URLSessionDelegate)?,
            delegateQueue: OperationQueue?
        ) -> URLSession? {
            guard cache.core.configuration.platform.makesSessionClasses, configuration.identifier == nil else {
                return nil
            }
            // The loader looks up in the cache, once for each load. The system does not.
            configuration.urlCache = nil
            let session = SessionClasses.shared.makeSession { loader in
                configuration.protocolClasses = [loader] + (configuration.protocolClasses ?? [])
                return URLSession(configuration: configuration, delegate: delegate, delegateQueue: delegateQueue)
            }
            // The session keeps the cache for as long as it exists.
            objc_setAssociatedObject(session, SessionClasses.shared.address, cache, .OBJC_ASSOCIATION_RETAIN)
            return session
        }
    }

    extension LoadingSystem {
        /// The client of a protocol is called where the protocol was started: see `ClientThread`.
        static func workQueue(of _: URLSession) -> DispatchQueue? { nil }
    }

    extension SessionClasses {
        /// By which an object that a session keeps is found.
        fileprivate var address: UnsafeRawPointer { UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) }
    }

    extension SessionLink {
        /// Nil if the session was not made for the loader.
        /// - Parameter loader: the class of the task's protocol.
        init?(_ task: URLSessionTask, loader: CachingURLProtocol.Type = CachingURLProtocol.self) {
            guard let session = SessionClasses.shared.session(of: loader) else { return nil }
            self.init(session: session, task: task)
        }

        var cache: CacheCore? {
            (objc_getAssociatedObject(session, SessionClasses.shared.address) as? any CacheShell)?.core
        }

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

    /// The thread that called `startLoading`, by its run loop.
    ///
    /// `@unchecked Sendable`: constant, and the two functions used may be called from any thread.
    private struct ClientThread: ClientQueue, @unchecked Sendable {
        let loop: CFRunLoop?
        let modes: CFArray

        /// The queue for a client whose protocol starts now, on the calling thread.
        static func current() -> any ClientQueue {
            let loop = CFRunLoopGetCurrent()
            let running = CFRunLoopCopyCurrentMode(loop)?.rawValue as String?
            let modes = ClientModes.modes(running: running, common: CFRunLoopMode.commonModes.rawValue as String)
            guard let modes else { return DispatchQueue(label: "DiskURLCache.client", qos: .userInitiated) }
            return ClientThread(loop: loop, modes: modes as CFArray)
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
            let (session, task) = (exchange.session, exchange.task)
            session.delegateQueue.addOperation {
                let ofTask = task?.delegate
                let ofSession = session.delegate
                let route = ChallengeRoute(subject, .init(ofTask, ofSession))
                let asked = route == .task ? ofTask : ofSession as? any URLSessionTaskDelegate
                switch (route, task) {
                case (.session, _):
                    ofSession?.urlSession?(session, didReceive: challenge, completionHandler: answer)
                case (.task, let task?), (.sessionForTask, let task?):
                    asked?.urlSession?(session, task: task, didReceive: challenge, completionHandler: answer)
                // A load without a task has no delegate that could be asked about one.
                default: answer(.performDefaultHandling, nil)
                }
            }
        }
    }

    extension ChallengeRoute.Methods {
        fileprivate init(_ ofTask: (any URLSessionTaskDelegate)?, _ ofSession: (any URLSessionDelegate)?) {
            let otherOfSession = ofSession as? any URLSessionTaskDelegate
            self.init(
                session: ofSession?.urlSession(_:didReceive:completionHandler:) != nil,
                task: ofTask?.urlSession(_:task:didReceive:completionHandler:) != nil,
                sessionForTask: otherOfSession?.urlSession(_:task:didReceive:completionHandler:) != nil)
        }
    }
#endif
