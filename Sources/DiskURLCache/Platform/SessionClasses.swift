import Foundation

/// The sessions that were made for the loader on Apple platforms. Each has its own protocol class.
///
/// Apple's system gives a protocol its task but not its session. Only by its class can a protocol know its session on
/// every version of the system. The other public ways fail: a header field of the configuration would reach the origin
/// with the tasks that the system loads, and does not reach a protocol on every version ("openradar 17809816"); the
/// properties of `URLProtocol` belong to a request, and a configuration has none; `urlSession(_:didCreateTask:)` needs
/// iOS 16, and a delegate of ours before the app's.
///
/// Classes are never removed: a new session takes the class of one that was released. Nothing here depends on the
/// system, so that tests can run it on Linux.
final class SessionClasses: Sendable {
    static let shared = SessionClasses()

    private struct Entry {
        let loader: CachingURLProtocol.Type
        weak var session: URLSession?
    }

    private struct State {
        var entries: [Entry] = []
        /// The name of the class that was made last.
        var lastName: Any.Type = Never.self
    }

    private let state = Mutex(State())

    /// - Parameter make: makes a session whose configuration has the class.
    func makeSession(_ make: (CachingURLProtocol.Type) -> URLSession) -> URLSession {
        // Sessions are released outside of the lock: the app may have released one meanwhile, and its delegate may make
        // a session as it goes.
        let (loader, living) = state.withLock { state in
            let living = state.entries.map(\.session)
            if let free = living.firstIndex(where: { $0 == nil }) {
                return (state.entries.remove(at: free).loader, living)
            }
            let loader: CachingURLProtocol.Type
            (loader, state.lastName) = Self.nextClass(after: state.lastName)
            return (loader, living)
        }
        withExtendedLifetime(living) {}
        let session = make(loader)
        state.withLock { $0.entries.append(Entry(loader: loader, session: session)) }
        return session
    }

    /// The session of a class. Nil for the loader's common class, and if the session was released.
    func session(of loader: CachingURLProtocol.Type) -> URLSession? {
        state.withLock { state in
            state.entries.firstIndex { $0.loader == loader }.flatMap { state.entries[$0].session }
        }
    }

    private static func nextClass<Name>(after name: Name.Type) -> (CachingURLProtocol.Type, Any.Type) {
        (SessionProtocol<FollowingName<Name>>.self, FollowingName<Name>.self)
    }
}

/// A type that serves only as a name: each makes a different class.
private enum FollowingName<Name> {}

/// The class of one session.
private final class SessionProtocol<Name>: CachingURLProtocol {
    override var loader: CachingURLProtocol.Type { SessionProtocol<Name>.self }
}

extension CachingURLProtocol {
    /// Whether a class is the loader's, or that of a session.
    static func isLoader(_ candidate: AnyClass) -> Bool {
        candidate is CachingURLProtocol.Type
    }
}
