import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Rules for the system's own loader, which calls the cache as `URLCache` documents: the loader judges freshness, so it
/// gets the stored response, stale or not. These are the few cases in which a miss is the only safe answer.
enum SystemContract {
    /// The loader would use a part of a response as the whole, or the whole as a part.
    static func concernsPart(_ request: URLRequest, status: Int?) -> Bool {
        request.value(forHTTPHeaderField: "Range") != nil || status == 206
    }

    /// The request of a task that a response answers: after a redirect the task has two. Nil when the response answers
    /// neither: stored under either, it would answer a different request.
    ///
    /// The original one counts: the system may add fields to the current one while it sends it, and a later lookup
    /// would not have them. The fields that tell users apart are still added from the current one.
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
