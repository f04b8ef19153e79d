import Foundation

extension URL {
    /// The text for files: without user name and password.
    var withoutCredentials: String? {
        // Without "@" there are none, and searching for the byte is faster than parsing.
        guard absoluteString.utf8.contains(UInt8(ascii: "@")), user != nil || password != nil else {
            return absoluteString
        }
        var components = URLComponents(url: self, resolvingAgainstBaseURL: true)
        components?.user = nil
        components?.password = nil
        return components?.string
    }

    /// The URL for reports.
    var removingCredentials: URL? {
        withoutCredentials.flatMap { $0 == absoluteString ? absoluteURL : URL(string: $0) }
    }

    /// As a log may have it: a query may hold what is secret.
    var withoutQuery: String? { withoutCredentials.map { String($0.prefix { $0 != "?" && $0 != "#" }) } }

    /// The URL as it is printed: without user name and password. Of a query it says only that there is one, since a
    /// signed URL has its signature there.
    package var printed: String {
        let text = withoutQuery ?? "a URL"
        return query == nil ? text : text + "?…"
    }
}
