import Foundation

/// Which stored responses an unsafe request makes invalid (RFC 9111 §4.4).
enum Invalidation {
    /// The URIs whose every stored response is removed: the target, and `Location` and `Content-Location` when they
    /// have the target's origin. Of a field that is repeated the first value counts, so that an answer cannot remove
    /// any number of URIs. Empty for safe methods and for error responses.
    static func urls(method: String, target: URL, status: Int, fields: HeaderFields) -> [URL] {
        guard !isSafe(method), (200...399).contains(status) else { return [] }
        var urls = [target]
        for name in ["Location", "Content-Location"] {
            // Without this check one site could empty the cache of another.
            guard let value = fields.fields.first(where: { $0.name.equalsIgnoringASCIICase(name) })?.value,
                let url = URL(string: value, relativeTo: target)?.absoluteURL, url.hasSameOrigin(as: target),
                !urls.contains(url)
            else { continue }
            urls.append(url)
        }
        return urls
    }

    /// Methods registered as safe. An unknown method may change anything, so it counts as unsafe.
    static func isSafe(_ method: String) -> Bool {
        ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY"].contains(method)
    }
}
