import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a task's session is like, as far as it can be found out from the task.
///
/// Foundation on Linux gives a protocol the task but not its session, and `task.session` is internal. It is read where the
/// runtime says that it lies; should a later Foundation lay its tasks out differently, the link is empty and the loader uses
/// careful defaults: a default configuration, the body in one piece. On Apple platforms the link is always empty.
struct SessionLink: Sendable {
    let session: URLSession?
    /// The queue on which Foundation calls protocols, and on which it expects a protocol to call its client.
    let workQueue: DispatchQueue?

    /// For a load that no task stands for.
    init(session: URLSession) {
        self.session = session
        workQueue = nil
    }

    init(_ task: URLSessionTask) {
        #if canImport(FoundationNetworking)
            (session, workQueue) = TaskProperties.shared.sessionAndWorkQueue(of: task)
        #else
            session = nil
            workQueue = nil
        #endif
    }

    /// The request as Foundation will send it: fields of the configuration are added where the request has none. The
    /// session's cookies are in it since the task was made.
    func effectiveRequest(_ request: URLRequest) -> URLRequest {
        guard let additional = session?.configuration.httpAdditionalHeaders, !additional.isEmpty else { return request }
        var request = request
        for (name, value) in additional {
            guard let name = name.base as? String, request.value(forHTTPHeaderField: name) == nil else { continue }
            request.setValue(value as? String ?? "\(value)", forHTTPHeaderField: name)
        }
        return request
    }

    /// The request that follows a redirect, with the cookies the session has by now, as Foundation does it.
    func withCookies(_ request: URLRequest) -> URLRequest {
        guard let configuration = session?.configuration, configuration.httpShouldSetCookies, let url = request.url,
            let cookies = configuration.httpCookieStorage?.cookies(for: url), !cookies.isEmpty,
            let value = HTTPCookie.requestHeaderFields(with: cookies)["Cookie"], !value.isEmpty
        else { return request }
        var request = request
        request.setValue(value, forHTTPHeaderField: "Cookie")
        return request
    }

    /// Whether the loader handles tasks of this session. `URLSession.shared` takes registered classes.
    var hasLoader: Bool {
        guard let session else { return false }
        return session.configuration.protocolClasses?.contains { $0 == CachingURLProtocol.self } == true
    }

    /// True when it is certain that each chunk reaches a delegate: a completion handler would get the last one only.
    /// To be asked on `workQueue`.
    func deliversChunks(of task: URLSessionTask) -> Bool {
        #if canImport(FoundationNetworking)
            guard let session, let registry = Mirror(reflecting: session).descendant("taskRegistry"),
                let behaviours = Mirror(reflecting: registry).descendant("behaviours")
            else { return false }
            for case (_, let element) in Mirror(reflecting: behaviours).children {
                let pair = Array(Mirror(reflecting: element).children)
                guard pair.count == 2, pair[0].value as? Int == task.taskIdentifier else { continue }
                return "\(pair[1].value)".hasSuffix("callDelegate")
            }
            return false
        #else
            return true
        #endif
    }
}

#if canImport(FoundationNetworking)
    /// Which session a task belongs to, and the queue of that session, read from the task's stored properties.
    ///
    /// Both are set when a task is made and not changed after. The first look goes through `Mirror`, which also reads the plain
    /// numbers that lie before them; after that no other property is touched, since Foundation may be writing to it.
    final class TaskProperties: Sendable {
        static let shared = TaskProperties()

        private struct Places {
            let session: StoredProperty
            let workQueue: StoredProperty?
        }

        private let places = Mutex<Places?>(nil)

        func sessionAndWorkQueue(of task: URLSessionTask) -> (URLSession?, DispatchQueue?) {
            guard let places = places.withLock({ $0 }) else { return findPlaces(in: task) }
            return (
                places.session.object(in: task) as? URLSession,
                places.workQueue?.value(of: task, as: DispatchQueue.self)
            )
        }

        /// A task that nobody's session made, as in tests, has none and teaches nothing.
        private func findPlaces(in task: URLSessionTask) -> (URLSession?, DispatchQueue?) {
            var mirror: Mirror? = Mirror(reflecting: task)
            while let current = mirror, current.subjectType != URLSessionTask.self { mirror = current.superclassMirror }
            let session = mirror?.descendant("session") as? URLSession
            let workQueue = StoredProperty("workQueue", of: URLSessionTask.self)
            // Should the session be held weakly one day, which its place does not tell, there would be something else than
            // the address that `Mirror`, which knows, gives: then every task is asked through it. Sixteen bytes are an
            // object and what it conforms to, whatever the object is; a protocol that values can conform to has more.
            if let session, let property = StoredProperty("session", of: URLSessionTask.self),
                property.holds(session, in: task), property.size == 16
            {
                places.withLock { $0 = Places(session: property, workQueue: workQueue) }
            }
            return (session, workQueue?.value(of: task, as: DispatchQueue.self))
        }
    }
#endif
