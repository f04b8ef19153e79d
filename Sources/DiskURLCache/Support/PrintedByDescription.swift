import Foundation

/// A value that prints as its `description`: in a log line, by `dump`, in a debugger and in the message of a failed
/// test.
///
/// Without it, Swift prints every stored property, however deep. Some must not be in a log: the `Authorization` or
/// `Cookie` of a request, a body, a password in a URL.
package protocol PrintedByDescription: CustomStringConvertible, PrintedWithoutProperties {
    /// What `description` returns. Each type has this member, and only the protocol has a public one.
    var printedText: String { get }
}

extension PrintedByDescription {
    public var description: String { printedText }
}

/// A type whose properties are never printed, not even by `dump`.
package protocol PrintedWithoutProperties: CustomReflectable {}

extension PrintedWithoutProperties {
    public var customMirror: Mirror {
        Mirror(self, children: [Mirror.Child](), ancestorRepresentation: .suppressed)
    }
}

extension String {
    /// The text in quotation marks, for error messages about a wrong URL or host: without user name, password and
    /// query.
    var quotedWithoutCredentials: String {
        let query = firstIndex(of: "?") ?? endIndex
        let rest = query == endIndex ? "" : "?…"
        if let at = self[..<query].lastIndex(of: "@") { return "\"…\(self[at..<query])\(rest)\"" }
        // What is before the question mark may be the beginning of a password.
        return self[query...].contains("@") ? "\"…\"" : "\"\(self[..<query])\(rest)\""
    }
}
