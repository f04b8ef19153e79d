import Foundation

/// Rules for the system's own loader, which calls the cache as `URLCache` documents. That loader judges freshness
/// itself, so it gets stored responses whether fresh or stale. These are the few cases in which only a miss is safe.
enum SystemContract {
    /// Whether the loader would use the whole of a response as a part.
    static func asksForPart(_ request: URLRequest) -> Bool { request.value(forHTTPHeaderField: "Range") != nil }

    /// The request of a task that a response answers: after a redirect the task has two requests. Nil if the response
    /// answers neither, so that it must not be stored under either.
    ///
    /// The original request counts, since the system may add fields to the current one which a later lookup would not
    /// have. Only the fields that distinguish users are taken from the current one.
    static func request(original: URLRequest?, current: URLRequest?, answeredBy url: URL?) -> URLRequest? {
        guard let url else { return current ?? original }
        let isOriginal = isRequest(original, for: url)
        let isCurrent = isRequest(current, for: url)
        guard isOriginal, var request = original else { return isCurrent ? current : nil }
        guard isCurrent, let current else { return request }
        for name in ["Authorization", "Cookie"] where request.value(forHTTPHeaderField: name) == nil {
            if let value = current.value(forHTTPHeaderField: name) { request.setValue(value, forHTTPHeaderField: name) }
        }
        return request
    }

    private static func isRequest(_ request: URLRequest?, for url: URL) -> Bool {
        guard let requested = request?.url else { return false }
        return isSame(requested, url)
    }

    /// Compares URLs without their fragments, which are not sent.
    private static func isSame(_ one: URL, _ other: URL) -> Bool {
        if one == other { return true }
        let (one, other) = (one.absoluteString, other.absoluteString)
        return one.prefix { $0 != "#" } == other.prefix { $0 != "#" }
    }
}
