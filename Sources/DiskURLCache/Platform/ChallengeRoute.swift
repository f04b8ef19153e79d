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

    /// What a challenge is about.
    enum Subject: Sendable {
        /// Whether the server is to be trusted.
        case trust
        /// Who uses the connection: a client certificate, NTLM, Negotiate.
        case connection
        /// Who sends the request.
        case request

        #if canImport(Darwin)
            private static let serverTrust = NSURLAuthenticationMethodServerTrust
        #else
            // Foundation on Linux has no such challenges.
            private static let serverTrust = "NSURLAuthenticationMethodServerTrust"
        #endif

        /// - Parameter method: `NSURLAuthenticationMethod…`.
        init(method: String) {
            switch method {
            case Self.serverTrust: self = .trust
            case NSURLAuthenticationMethodDefault, NSURLAuthenticationMethodHTTPBasic,
                NSURLAuthenticationMethodHTTPDigest:
                self = .request
            default: self = .connection
            }
        }
    }

    /// Which methods there are.
    struct Methods: Sendable {
        var session: Bool
        var task: Bool
        var sessionForTask: Bool
    }

    init(_ subject: Subject, _ methods: Methods) {
        if subject != .request, methods.session {
            self = .session
        } else if methods.task {
            self = .task
        } else {
            self = methods.sessionForTask ? .sessionForTask : .system
        }
    }

    /// Whether the answer to the request depends on credentials that are no part of it. Its key does not tell whose answer it is: it is
    /// not stored. The system may know who uses a connection without a proposal: a ticket of Kerberos, or a preferred certificate.
    static func addsCredentials(
        _ subject: Subject, disposition: URLSession.AuthChallengeDisposition, hasProposed: Bool
    ) -> Bool {
        switch disposition {
        case .useCredential: subject != .trust
        case .performDefaultHandling: subject == .connection || subject == .request && hasProposed
        default: false
        }
    }
}
