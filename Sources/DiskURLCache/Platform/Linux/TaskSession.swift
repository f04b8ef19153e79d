#if canImport(FoundationNetworking)
    import Foundation

    /// What a cache returns for the lookup that Foundation makes before each load. It is not a response: it passes what
    /// was read from the task on to the task's protocol, which need not read it again.
    ///
    /// `@unchecked Sendable`, as its superclass: constant.
    final class KnownTask: CachedURLResponse, @unchecked Sendable {
        let link: SessionLink

        init(_ link: SessionLink) {
            self.link = link
            super.init(response: Self.none, data: Data(), userInfo: nil, storagePolicy: .notAllowed)
        }

        private static let none = URLResponse(
            url: URL(fileURLWithPath: "/"), mimeType: nil, expectedContentLength: 0, textEncodingName: nil)
    }

    /// What Foundation on Linux does not tell a protocol: the session of a task that no `LoaderSession` noted, who gets
    /// the body of that task, and the queue on which a session calls its protocols.
    ///
    /// All is read by `Mirror`, here and nowhere else. A read touches a single property, which is set before the task
    /// is resumed and not changed after that; the position in a task is learned from one that no other thread has. If
    /// Foundation's tasks have a different layout, nothing is known, and Foundation's own class serves the load.
    package enum TaskSession {
        /// False if Foundation's tasks have a different layout, or if the environment says so, for tests and in case
        /// reading fails with some version. Then nothing is cached for URLSession.
        package static var isReadable: Bool { positions != nil }

        /// The session of a task; and, if its audience depends on it, whether an async method made the task. Both are
        /// read at once, since it takes long to reach the properties of a task.
        ///
        /// Nil if it cannot be read.
        static func origin(of task: URLSessionTask) -> (session: URLSession, isAsync: Bool?)? {
            guard let positions, let properties = properties(of: task),
                let session = child(at: positions.session, of: properties)?.value as? URLSession
            else { return nil }
            // Only an async method gives a task of a session without a delegate somebody else who may want the body. Of
            // a `LoaderSession`, nearly all tasks that are read are of async methods.
            guard session.delegate == nil, !(session is LoaderSession), let position = positions.isAsync else {
                return (session, nil)
            }
            return (session, child(at: position, of: properties)?.value as? Bool)
        }

        /// The queue that the queues of all tasks of a session end in: what runs on it runs beside no call of
        /// Foundation's to a protocol of the session. Foundation's own classes call their clients on it. To be read
        /// once a session.
        static func workQueue(of session: URLSession) -> DispatchQueue? {
            guard isReadable else { return nil }
            return child("workQueue", of: mirror(of: session, as: URLSession.self)) as? DispatchQueue
        }

        private struct Positions {
            let session: Int
            /// Of the mark of tasks that async methods make; nil if there is none.
            let isAsync: Int?
        }

        private static let positions: Positions? = {
            guard ProcessInfo.processInfo.environment["DISKURLCACHE_NO_MIRROR"] == nil,
                let labels = properties(of: URLSessionDataTask())?.children.map(\.label),
                let session = labels.firstIndex(of: "session")
            else { return nil }
            return Positions(session: session, isAsync: labels.firstIndex(of: "_callCompletionHandlerInline"))
        }()

        /// The properties that `URLSessionTask` itself declares.
        private static func properties(of task: URLSessionTask) -> Mirror? {
            mirror(of: task, as: URLSessionTask.self)
        }

        /// The properties that a class itself declares.
        private static func mirror(of object: AnyObject, as type: Any.Type) -> Mirror? {
            var mirror: Mirror? = Mirror(reflecting: object)
            while let current = mirror, current.subjectType != type { mirror = current.superclassMirror }
            return mirror
        }

        private static func child(at position: Int, of mirror: Mirror) -> Mirror.Child? {
            let children = mirror.children
            let index = children.index(children.startIndex, offsetBy: position, limitedBy: children.endIndex)
            return index.flatMap { $0 < children.endIndex ? children[$0] : nil }
        }

        /// Who gets the body of a task's answer.
        enum Audience {
            /// The session's delegate, if there is one.
            case delegate
            /// Also a task of a session without a delegate that has no handler: nobody gets its body.
            /// - Parameter taskDelegate: the delegate that `data(for:delegate:)` was given.
            case completionHandler(taskDelegate: (any URLSessionDataDelegate)?)
        }

        /// Nil if it cannot be read. Called on the work queue, which guards the properties.
        /// - Parameter isAsync: as `origin(of:)` has read it.
        static func audience(of task: URLSessionTask, in session: URLSession, isAsync: Bool?) -> Audience? {
            // The registry takes six times as long to read.
            if isAsync == false { return .completionHandler(taskDelegate: nil) }
            guard let registry = child("taskRegistry", of: mirror(of: session, as: URLSession.self)),
                let behaviours = child("behaviours", of: Mirror(reflecting: registry))
            else { return nil }
            guard let behaviour = (behaviours as? any ReadableByNumber)?.value(task.taskIdentifier) else { return nil }
            // A case with a handler has it as its only child. Async methods make tasks with a handler and space for a
            // delegate.
            let child = Mirror(reflecting: behaviour).children.first
            switch child?.label {
            case nil:
                guard "\(behaviour)" == "callDelegate" else { return nil }
                return session.delegate == nil ? .completionHandler(taskDelegate: nil) : .delegate
            case "dataCompletionHandler"?: return .completionHandler(taskDelegate: nil)
            case "dataCompletionHandlerWithTaskDelegate"?:
                let values = child.map { Mirror(reflecting: $0.value).children.map(\.value) }
                return .completionHandler(taskDelegate: values?.last as? any URLSessionDataDelegate)
            default: return nil
            }
        }

        /// The known positions of properties; searching from the first property takes longer.
        private static let found = Mutex<[String: Int]>([:])

        /// Reads the properties only up to the wanted one.
        private static func child(_ label: String, of mirror: Mirror?) -> Any? {
            guard let mirror else { return nil }
            if let position = found.withLock({ $0[label] }), let child = child(at: position, of: mirror),
                child.label == label
            {
                return child.value
            }
            for (position, child) in mirror.children.enumerated() where child.label == label {
                found.withLock { $0[label] = position }
                return child.value
            }
            return nil
        }
    }

    /// A dictionary whose values have a type that cannot be named here. A cast to `[Int: Any]` would copy it, with the
    /// entries of all tasks of the session, for each load.
    private protocol ReadableByNumber {
        func value(_ number: Int) -> Any?
    }

    extension Dictionary: ReadableByNumber where Key == Int {
        fileprivate func value(_ number: Int) -> Any? { self[number] }
    }
#endif
