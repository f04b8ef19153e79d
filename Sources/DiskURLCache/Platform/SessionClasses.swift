import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The sessions that were made for the loader on Apple platforms, each with a protocol class of its own.
///
/// Apple's system gives a protocol its task, and not its session. The protocol's class is the one thing by which a
/// session's configuration is known to it on every version of the system: additional header fields of the configuration
/// do not reach a protocol on some ("openradar 17809816").
///
/// Classes are never removed. The next session takes the class of a session that was released. Nothing here depends on
/// the system, so that tests run it on Linux too.
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
        state.withLock { state in
            let loader: CachingURLProtocol.Type
            if let free = state.entries.firstIndex(where: { $0.session == nil }) {
                loader = state.entries.remove(at: free).loader
            } else {
                (loader, state.lastName) = Self.nextClass(after: state.lastName)
            }
            let session = make(loader)
            state.entries.append(Entry(loader: loader, session: session))
            return session
        }
    }

    /// Nil for the loader's common class, and if the session was released.
    func session(of loader: CachingURLProtocol.Type) -> URLSession? {
        state.withLock { $0.entries.first { $0.loader == loader }?.session }
    }

    private static func nextClass<Name>(after name: Name.Type) -> (CachingURLProtocol.Type, Any.Type) {
        (SessionProtocol<FollowingName<Name>>.self, FollowingName<Name>.self)
    }
}

/// A type that is a name only: each one gives another class.
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
