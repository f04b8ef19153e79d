import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Who is asked about a challenge that the loader's own session gets: whom the system would ask if the app's session loaded by itself
/// (Apple, "Handling an Authentication Challenge").
enum ChallengeRoute: Equatable {
    /// `urlSession(_:didReceive:completionHandler:)` of the session's delegate.
    case session
    /// `urlSession(_:task:didReceive:completionHandler:)` of the task's own delegate.
    case task
    /// The same method of the session's delegate.
    case sessionForTask
    /// Nobody has a method for it: the session's configuration decides, as without the loader.
    case system

    /// Which methods there are.
    struct Methods: Sendable {
        var session: Bool
        var task: Bool
        var sessionForTask: Bool
    }

    /// - Parameter isOfConnection: about the connection (trust, client certificate, NTLM, Negotiate) and not about one request.
    init(isOfConnection: Bool, _ methods: Methods) {
        if isOfConnection, methods.session {
            self = .session
        } else if methods.task {
            self = .task
        } else {
            self = methods.sessionForTask ? .sessionForTask : .system
        }
    }

    /// Whether the answer to the request depends on credentials that are no part of it. Its key does not tell whose answer it is: it is
    /// not stored.
    static func addsCredentials(
        isOfConnection: Bool, disposition: URLSession.AuthChallengeDisposition, hasProposed: Bool
    ) -> Bool {
        guard !isOfConnection else { return false }
        switch disposition {
        case .useCredential: return true
        case .performDefaultHandling: return hasProposed
        default: return false
        }
    }
}
