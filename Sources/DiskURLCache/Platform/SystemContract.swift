import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a cache does when the system's own loader calls it as `URLCache` documents: the loader judges freshness, so it gets what
/// was stored, stale or not. These are the few cases in which a miss is the only safe answer.
enum SystemContract {
    /// A part of a response would pass for the whole, or the whole for a part.
    static func concernsPart(_ request: URLRequest, status: Int?) -> Bool {
        request.value(forHTTPHeaderField: "Range") != nil || status == 206
    }

    /// The request of a task that a response answers: after a redirect the task has two. Nil when it answers neither: stored under
    /// either, it would be given to whoever asks for something else.
    ///
    /// The original one counts: the system may add fields to the current one while it sends it, and a later lookup would not have
    /// them. What tells users apart is added from the current one all the same.
    static func request(original: URLRequest?, current: URLRequest?, answeredBy url: URL?) -> URLRequest? {
        guard let url else { return current ?? original }
        let requests = [original, current].compactMap { $0 }.filter { $0.url.map { isSame($0, url) } ?? false }
        guard var request = requests.first, let last = requests.last else { return nil }
        for name in ["Authorization", "Cookie"] where request.value(forHTTPHeaderField: name) == nil {
            if let value = last.value(forHTTPHeaderField: name) { request.setValue(value, forHTTPHeaderField: name) }
        }
        return request
    }

    /// Fragments are not sent.
    private static func isSame(_ one: URL, _ other: URL) -> Bool {
        if one == other { return true }
        let (one, other) = (one.absoluteString, other.absoluteString)
        return one.prefix { $0 != "#" } == other.prefix { $0 != "#" }
    }
}
