import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a task's session is like, as far as it can be found out from the task.
///
/// Foundation on Linux gives a protocol the task but not its session, and `task.session` is internal. Reflection reads
/// it; should a later Foundation lay its tasks out differently, the link is empty and the loader uses careful defaults:
/// a default configuration, the body in one piece. On Apple platforms the link is always empty.
struct SessionLink {
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
            session = TaskReflection.child("session", of: task) as? URLSession
            workQueue = TaskReflection.child("workQueue", of: task) as? DispatchQueue
        #else
            session = nil
            workQueue = nil
        #endif
    }

    /// The request as Foundation will send it: fields of the configuration are added where the request has none.
    func effectiveRequest(_ request: URLRequest) -> URLRequest {
        guard let additional = session?.configuration.httpAdditionalHeaders, !additional.isEmpty else { return request }
        var request = request
        for (name, value) in additional {
            guard let name = name.base as? String, request.value(forHTTPHeaderField: name) == nil else { continue }
            request.setValue(value as? String ?? "\(value)", forHTTPHeaderField: name)
        }
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
    /// Stored properties of `URLSessionTask` by name. The position of each is found once.
    private enum TaskReflection {
        private static let positions = Mutex<[String: Int]>([:])

        static func child(_ name: String, of task: URLSessionTask) -> Any? {
            var mirror: Mirror? = Mirror(reflecting: task)
            while let current = mirror, current.subjectType != URLSessionTask.self {
                mirror = current.superclassMirror
            }
            guard let children = mirror?.children else { return nil }
            if let position = positions.withLock({ $0[name] }),
                let index = children.index(children.startIndex, offsetBy: position, limitedBy: children.endIndex),
                index != children.endIndex, children[index].label == name
            {
                return unwrapped(children[index].value)
            }
            guard let position = children.enumerated().first(where: { $0.element.label == name })?.offset else {
                return nil
            }
            positions.withLock { $0[name] = position }
            return unwrapped(children[children.index(children.startIndex, offsetBy: position)].value)
        }

        private static func unwrapped(_ value: Any) -> Any? {
            let mirror = Mirror(reflecting: value)
            guard mirror.displayStyle == .optional else { return value }
            return mirror.children.first?.value
        }
    }
#endif
