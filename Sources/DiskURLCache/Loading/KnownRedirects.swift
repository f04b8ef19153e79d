import Foundation

/// URLs that were seen to redirect. A load of one of them follows its redirects itself, so that each hop is looked up and stored.
final class KnownRedirects: Sendable {
    /// Forgotten all at once when there are more: what is forgotten is noticed again.
    static let limit = 4_096

    private let urls = Mutex<Set<URL>>([])

    func note(_ url: URL) {
        urls.withLock { urls in
            if urls.count >= Self.limit { urls = [] }
            urls.insert(url)
        }
    }

    func contains(_ url: URL) -> Bool {
        urls.withLock { !$0.isEmpty && $0.contains(url) }
    }
}
