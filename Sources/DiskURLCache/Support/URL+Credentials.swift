import Foundation

extension URL {
    /// Whether a text is a URL with a user name or a password.
    static func hasCredentials(_ text: String) -> Bool {
        guard text.contains(byte: UInt8(ascii: "@")), let url = URL(string: text) else { return false }
        return url.user != nil || url.password != nil
    }

    /// The text for files: without user name and password.
    var withoutCredentials: String? {
        let text = absoluteString
        // A URL without "@" has none of these, and looking for one byte is faster than parsing.
        guard text.contains(byte: UInt8(ascii: "@")), user != nil || password != nil else { return text }
        var components = URLComponents(url: self, resolvingAgainstBaseURL: true)
        components?.user = nil
        components?.password = nil
        return components?.string
    }

    /// The URL for reports.
    package var removingCredentials: URL? {
        withoutCredentials.flatMap { $0 == absoluteString ? absoluteURL : URL(string: $0) }
    }

    /// For logs: without the query, which may contain secrets.
    var withoutQuery: String? {
        guard let text = withoutCredentials else { return nil }
        return String(text.prefix { $0 != "?" && $0 != "#" })
    }

    /// The URL in the form in which it is printed: without user name and password. A query is only indicated, since a
    /// signed URL has its signature there.
    package var printed: String {
        let text = withoutQuery ?? "a URL"
        return query == nil ? text : text + "?…"
    }
}
