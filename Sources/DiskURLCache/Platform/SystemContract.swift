import Foundation

/// Rules for the system's own loader, which calls the cache as `URLCache` documents. That loader judges freshness
/// itself, so it gets stored responses whether fresh or stale. These are the few cases in which only a miss is safe.
enum SystemContract {
    /// Whether the loader would use a part of a response as the whole, or the whole as a part.
    static func concernsPart(_ request: URLRequest, status: Int?) -> Bool {
        request.value(forHTTPHeaderField: "Range") != nil || status == 206
    }

    /// The request of a task that a response answers: after a redirect the task has two requests. Nil if the response
    /// answers neither, so that it must not be stored under either.
    ///
    /// The original request counts, since the system may add fields to the current one which a later lookup would not
    /// have. Only the fields that distinguish users are taken from the current one.
    static func request(original: URLRequest?, current: URLRequest?, answeredBy url: URL?) -> URLRequest? {
        guard let url else { return current ?? original }
        let requests = [original, current].compactMap { $0 }.filter { $0.url.map { isSame($0, url) } ?? false }
        guard var request = requests.first, let last = requests.last else { return nil }
        for name in ["Authorization", "Cookie"] where request.value(forHTTPHeaderField: name) == nil {
            if let value = last.value(forHTTPHeaderField: name) { request.setValue(value, forHTTPHeaderField: name) }
        }
        return request
    }

    /// Compares URLs without their fragments, which are not sent.
    private static func isSame(_ one: URL, _ other: URL) -> Bool {
        if one == other { return true }
        let (one, other) = (one.absoluteString, other.absoluteString)
        return one.prefix { $0 != "#" } == other.prefix { $0 != "#" }
    }
}
