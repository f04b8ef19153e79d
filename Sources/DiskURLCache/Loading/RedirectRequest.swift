import Foundation

extension DiskURLCache.Request {
    /// More hops than this are an error, as in Foundation.
    static let redirectLimit = 20

    /// Credentials, the name by which the origin was asked, and the page that asks it (RFC 9110 §15.4).
    private static let fieldsOfOneOrigin = ["Authorization", "Proxy-Authorization", "Cookie", "Host", "Origin"]

    /// They describe the body, or say how it is sent (RFC 9110 §15.4).
    private static let fieldsOfABody =
        BodyDigests.fieldNames + [
            "Content-Encoding", "Content-Language", "Content-Length", "Content-Location", "Content-Type", "Digest",
            "Expect", "Last-Modified", "Transfer-Encoding",
        ]

    /// The request that follows a redirect (RFC 9110 §15.4): a `QUERY` stays one, except after a 303 (RFC 10008 §2.5).
    /// Nil when the response is no redirect that can be followed: it is then the answer.
    func following(status: Int, fields: HeaderFields) -> DiskURLCache.Request? {
        guard [301, 302, 303, 307, 308].contains(status) else { return nil }
        guard let base = foundationURL, let location = fields.single("Location") else { return nil }
        guard let target = URL(string: location, relativeTo: base)?.absoluteURL else { return nil }
        guard let scheme = target.scheme?.lowercased(), ["http", "https"].contains(scheme) else { return nil }
        guard target.host?.isEmpty == false else { return nil }

        var next = self
        // Foundation on Linux loads no URL whose scheme has capitals, although they mean the same (RFC 3986 §3.1).
        next.url = scheme + target.inheritingFragment(of: base).absoluteString.dropFirst(scheme.count)
        let becomesGet =
            switch status {
            case 303: method != "HEAD"
            case 301, 302: method == "POST"
            default: false
            }
        if becomesGet {
            next.method = "GET"
            next.dropBody()
            for name in Self.fieldsOfABody { next.headerFields.remove(name) }
        }
        if !base.hasSameOrigin(as: target) {
            // These are for the first origin only. The session adds its cookies for the next one.
            for name in Self.fieldsOfOneOrigin { next.headerFields.remove(name) }
        }
        return next
    }
}

extension URL {
    /// RFC 9110 §10.2.2: a redirect without a fragment inherits the fragment of the request.
    fileprivate func inheritingFragment(of other: URL) -> URL {
        guard fragment == nil, let fragment = other.fragment,
            var components = URLComponents(url: self, resolvingAgainstBaseURL: true)
        else { return self }
        components.fragment = fragment
        return components.url ?? self
    }
}
