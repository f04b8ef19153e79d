import Foundation

/// The delegate method that answers a challenge in the loader's session: the one that the system would call if the
/// app's own session were loading (Apple, "Handling an Authentication Challenge").
enum ChallengeRoute: Equatable {
    /// `urlSession(_:didReceive:completionHandler:)` of the session's delegate.
    case session
    /// `urlSession(_:task:didReceive:completionHandler:)` of the task's own delegate.
    case task
    /// The same method of the session's delegate.
    case sessionForTask
    /// No delegate has a method for it, so the session's configuration decides, as without the loader.
    case system

    /// The subject of a challenge.
    enum Subject: Sendable {
        /// Whether the server is to be trusted.
        case trust
        /// The user of the connection: a client certificate, NTLM, Negotiate.
        case connection
        /// The user who sends the request.
        case request

        /// - Parameter method: `NSURLAuthenticationMethod…`.
        init(method: String) {
            switch method {
            // Foundation on Linux does not declare this constant.
            case "NSURLAuthenticationMethodServerTrust": self = .trust
            case NSURLAuthenticationMethodDefault, NSURLAuthenticationMethodHTTPBasic,
                NSURLAuthenticationMethodHTTPDigest:
                self = .request
            default: self = .connection
            }
        }
    }

    /// The methods that the delegates have.
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

    /// Whether the answer depends on credentials that are not part of the request. Then its key does not show to which
    /// user it belongs, and it is not stored. The system may know the user of the connection even without a proposed
    /// credential, by a Kerberos ticket or a preferred certificate.
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
