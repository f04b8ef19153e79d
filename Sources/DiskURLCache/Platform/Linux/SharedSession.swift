#if canImport(FoundationNetworking)
    import Foundation

    /// `URLSession.shared` for a cache that became `URLCache.shared` only after that session was used: Foundation reads
    /// both the protocol classes and the cache of this session once, at its first use, so it would never ask the
    /// cache. Its configuration is a live object on Linux, which can still be changed.
    enum SharedSession {
        /// Seconds after which a new cache looks. An app has set `URLCache.shared` by then.
        private static let delay: TimeInterval = 1

        /// Looks once, a little later. A look makes the session if it was never used, so a cache that is not
        /// `URLCache.shared` looks at nothing.
        /// - Parameter attach: prepares the session's configuration for the cache, unless a cache of this library has
        ///   it.
        static func serve(_ cache: URLCache, attach: @escaping @Sendable (URLSessionConfiguration) -> Void) {
            _ = Timeouts.shared.after(delay) { [weak cache] in
                // Making the session takes a while, which must not delay other timeouts.
                CacheCore.lookupQueue.async { [weak cache] in
                    guard let cache, URLCache.shared === cache else { return }
                    change(attach)
                }
            }
        }

        private static func change(_ attach: @escaping @Sendable (URLSessionConfiguration) -> Void) {
            // Foundation reads the configuration of a session on this queue.
            TaskSession.workQueue(of: URLSession.shared)?.async {
                attach(URLSession.shared.configuration)
            }
        }
    }
#endif
