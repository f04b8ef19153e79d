import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Sessions that were made for the loader, each with a protocol class of its own: where a protocol is told its task but not its
/// session, the class tells.
final class SessionClasses: Sendable {
    static let shared = SessionClasses()

    private struct Entry {
        let number: Int
        weak var session: URLSession?
    }

    /// By class.
    private let entries = Mutex<[ObjectIdentifier: Entry]>([:])

    /// - Parameter configuration: nobody else's; it has its `urlCache`.
    func makeSession(
        _ configuration: URLSessionConfiguration, delegate: (any URLSessionDelegate)?, delegateQueue: OperationQueue?
    ) -> URLSession {
        entries.withLock { entries in
            entries = entries.filter { $0.value.session != nil }
            let taken = Set(entries.values.map(\.number))
            let number = (0...taken.count).first { !taken.contains($0) } ?? taken.count
            let loader = Self.loader(number)
            let others = (configuration.protocolClasses ?? []).filter { !CachingURLProtocol.isLoader($0) }
            configuration.protocolClasses = [loader] + others
            let session = URLSession(
                configuration: configuration, delegate: delegate, delegateQueue: delegateQueue)
            entries[ObjectIdentifier(loader)] = Entry(number: number, session: session)
            return session
        }
    }

    /// Nil for the loader's common class, and for one whose session is gone.
    func session(of loader: CachingURLProtocol.Type) -> URLSession? {
        entries.withLock { $0[ObjectIdentifier(loader)]?.session }
    }

    // MARK: Classes by number

    /// The same class for the same number: generic types are made by the language when they are first used, and never go.
    static func loader(_ number: Int) -> CachingURLProtocol.Type {
        loader(number, Never.self)
    }

    /// - Parameter digits: the binary digits of the number so far, as a type.
    private static func loader<Digits>(_ number: Int, _ digits: Digits.Type) -> CachingURLProtocol.Type {
        if number == 0 { return SessionProtocol<Digits>.self }
        return number % 2 == 0 ? loader(number / 2, Zero<Digits>.self) : loader(number / 2, One<Digits>.self)
    }

    private enum Zero<Digits> {}
    private enum One<Digits> {}
}

/// The loader of one session.
private final class SessionProtocol<Digits>: CachingURLProtocol {}
