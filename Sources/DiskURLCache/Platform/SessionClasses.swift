#if canImport(Darwin)
    import Foundation

    // Never run by the project's tests: written from Apple's documentation.

    /// Sessions that were made for the loader, each with its protocol class: Apple's system gives a protocol its task
    /// and not its session, so the class identifies the session.
    ///
    /// Classes are made when they are needed (`objc_allocateClassPair`) and never removed. The next session takes the
    /// class of a session that was released.
    final class SessionClasses: Sendable {
        static let shared = SessionClasses()

        private struct Entry {
            let loader: CachingURLProtocol.Type
            weak var session: URLSession?
        }

        private let entries = Mutex<[Entry]>([])

        /// - Parameters:
        ///   - configuration: for this session only.
        ///   - cache: the loader looks up in it, once for each load; the system does not. Held by the session.
        func makeSession(
            _ configuration: URLSessionConfiguration, cache: any LoadHost, delegate: (any URLSessionDelegate)?,
            delegateQueue: OperationQueue?
        ) -> URLSession {
            entries.withLock { entries in
                let free = entries.firstIndex { $0.session == nil }
                let loader = free.map { entries.remove(at: $0).loader } ?? Self.makeClass()
                configuration.urlCache = nil
                configuration.protocolClasses = [loader] + (configuration.protocolClasses ?? [])
                let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: delegateQueue)
                session.hold(cache, for: self)
                entries.append(Entry(loader: loader, session: session))
                return session
            }
        }

        /// Nil for the loader's common class.
        func session(of loader: CachingURLProtocol.Type) -> URLSession? {
            entries.withLock { $0.first { $0.loader == loader }?.session }
        }

        func cache(of session: URLSession) -> (any LoadHost)? { session.held(for: self) as? any LoadHost }

        private static func makeClass() -> CachingURLProtocol.Type {
            // A name that no other copy of the library in the process has.
            let name = "DiskURLCacheSession_" + UUID().uuidString.filter { $0 != "-" }
            guard let made: AnyClass = objc_allocateClassPair(CachingURLProtocol.self, name, 0) else {
                return makeClass()
            }
            objc_registerClassPair(made)
            return made as? CachingURLProtocol.Type ?? makeClass()
        }
    }

    extension URLSession {
        /// Keeps an object for as long as this session exists.
        func hold(_ object: AnyObject, for owner: AnyObject) {
            objc_setAssociatedObject(self, Unmanaged.passUnretained(owner).toOpaque(), object, .OBJC_ASSOCIATION_RETAIN)
        }

        func held(for owner: AnyObject) -> Any? {
            objc_getAssociatedObject(self, Unmanaged.passUnretained(owner).toOpaque())
        }
    }
#endif
