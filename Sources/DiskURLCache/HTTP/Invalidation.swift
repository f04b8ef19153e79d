import Foundation

/// The stored responses that an answer makes invalid (RFC 9111 §4.4, RFC 9875 §3, Clear Site Data).
package struct Invalidation: Sendable, Equatable {
    /// The URL of the request that was answered.
    let target: URL
    /// The URIs whose stored responses are removed, with all their variants.
    let urls: [URL]
    /// The names of the groups whose responses are removed.
    package let groups: [String]
    /// Whether every stored response of the target's host is removed.
    package let emptiesHost: Bool

    /// Nil if the answer invalidates nothing, like nearly all answers.
    /// - Parameters:
    ///   - isKeyed: whether a key policy gave the request a key. Then the app says that the request only reads,
    ///     whatever its method is: it invalidates only groups that its answer names, and no URIs.
    ///   - concernsURL: false if the app says that the request changes no resource of its URL as a whole
    ///     (`Options.invalidatesURL`); evaluated only if it matters.
    ///   - target: the URL of the request; evaluated only if it matters.
    package init?(
        method: String, isKeyed: Bool, concernsURL: @autoclosure () -> Bool, target: @autoclosure () -> URL?,
        status: Int, fields: HeaderFields, isShared: Bool
    ) {
        guard Self.isPossible(method: method, fields: fields), let target = target() else { return nil }
        let isSafe = Self.isSafe(method)
        self.target = target
        urls =
            isKeyed || isSafe || !concernsURL()
            ? [] : Self.urls(method: method, target: target, status: status, fields: fields)
        groups = isSafe ? [] : CacheGroups.invalidated(by: fields)
        emptiesHost = ClearSiteData.emptiesCache(
            fields, isSecure: target.scheme?.lowercased() == "https", isShared: isShared)
        if urls.isEmpty, groups.isEmpty, !emptiesHost { return nil }
    }

    /// Whether the answer to a request with this method may invalidate anything: false for nearly all.
    static func isPossible(method: String, fields: HeaderFields) -> Bool {
        !isSafe(method) || fields[ClearSiteData.fieldName] != nil
    }

    /// The URIs whose every stored response is removed: the target, and `Location` and `Content-Location` when they
    /// have the target's origin. Each counts only with one value, so that an answer cannot remove any number of
    /// URIs. Empty for safe methods and for error responses.
    static func urls(method: String, target: URL, status: Int, fields: HeaderFields) -> [URL] {
        guard !isSafe(method), (200...399).contains(status) else { return [] }
        var urls = [target]
        for name in ["Location", "Content-Location"] {
            // Without this check one site could empty the cache of another.
            guard let value = fields.single(name),
                let url = URL(string: value, relativeTo: target)?.absoluteURL, url.hasSameOrigin(as: target),
                !urls.contains(url)
            else { continue }
            urls.append(url)
        }
        return urls
    }

    /// Methods registered as safe. An unknown method may change anything, so it counts as unsafe.
    package static func isSafe(_ method: String) -> Bool {
        ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY"].contains(method)
    }
}
