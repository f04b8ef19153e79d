import Foundation
import NIOSSL

extension RedisStorage {
    /// Where the server is, and how long it may take.
    public struct Configuration: Sendable {
        public enum Server: Sendable, Hashable {
            case host(String, port: Int = 6379)
            /// A Unix socket on this machine.
            case socket(path: String)
        }

        public var server: Server
        /// The user of Redis's access control list; nil for the default user.
        public var user: String?
        public var password: String?
        /// The number of the logical database.
        public var database = 0
        /// Encrypts the connection; nil, the default, does not. `.makeClientConfiguration()` checks the server's certificate and name
        /// against the system's roots; set its `trustRoots` for an authority of your own.
        public var tls: TLSConfiguration?
        /// The name that the server's certificate must have, where it is not that of ``server``.
        public var tlsName: String?
        /// Begins the name of each key, so that several caches and other programs can use one database. A cache with another prefix
        /// shares nothing with this one.
        public var prefix = "diskurlcache"
        /// The longest time that any call waits for the server, in seconds; then it is a miss.
        public var timeout: TimeInterval = 0.1
        /// The longest time in which a connection is made, the password checked and the scripts loaded. Seconds. Made in the
        /// background; no call waits longer than ``timeout`` for it.
        public var connectTimeout: TimeInterval = 1
        /// How long the server is left alone after a failure: every lookup is a miss at once. Then one call tries, and the others go on
        /// missing until that one has its answer. Seconds.
        public var pause: TimeInterval = 1
        /// Connections to the server at most. Each carries many calls at a time.
        public var connections = 2
        /// The largest entry that is stored, in bytes of its record. What is larger must pass through within ``timeout``, too.
        public var maximumEntrySize = 1 << 20
        /// How long an entry is kept after it may no longer answer by itself (`CacheEntry.usefulUntil`), where the origin can be asked
        /// if it still holds: a 304 saves the body. Seconds.
        public var confirmableLifetime: TimeInterval = 86_400
        /// How long any entry is kept at least, for direct calls and `isOffline`. Seconds.
        public var leastLifetime: TimeInterval = 60
        /// Told of what goes wrong, on a queue of its own. A failure that lasts is told at most once for each ``pause``.
        public var onFailure: (@Sendable (RedisFailure) -> Void)?

        public init(_ server: Server) {
            self.server = server
        }

        /// How the failures name the server.
        var place: String {
            switch server {
            case .host(let name, let port): "\(name):\(port)"
            case .socket(let path): path
            }
        }
    }
}
