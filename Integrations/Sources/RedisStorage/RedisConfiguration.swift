import Foundation
import Logging
import NIOCore
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
        /// Without `tls` it can be read on the way to another machine: `onFailure` is told so.
        public var password: String?
        /// The number of the logical database.
        public var database = 0
        /// Encrypts the connection; nil, the default, does not. `.makeClientConfiguration()` checks the server's
        /// certificate and name against the system's roots; set its `trustRoots` for an authority of your own.
        public var tls: TLSConfiguration?
        /// The name that the server's certificate must have, if it is not the name in `server`.
        public var tlsName: String?
        /// Begins the name of each key. Caches with the same prefix on one database share their entries, and a cache
        /// with another prefix shares nothing with them: one for each application and environment, such as
        /// `shop-staging`.
        public let prefix: String
        /// Known to the processes, and not to the server and its other users: a record that was written without the
        /// secret is not believed, and names, URLs, header fields and messages cannot be read or guessed; bodies can.
        /// 32 random bytes are good. A cache with another secret, or with none, finds nothing. Nil, the default: each
        /// user with write access can forge responses.
        public var secret: Data?
        /// The longest time that any call waits for the server, in seconds; then it is a miss.
        public var timeout: TimeInterval = 0.1
        /// The longest time in which a connection is made, the password checked and the scripts loaded. Seconds. Made
        /// in the background; no call waits longer than `timeout` for it.
        public var connectTimeout: TimeInterval = 1
        /// How long the server is left alone after a failure: every lookup is a miss at once. Then one call tries, and
        /// the others go on missing until that one has its answer. Seconds.
        public var pause: TimeInterval = 1
        /// Connections to the server at most. Each carries many calls at a time.
        public var connections = 2
        /// The largest entry that is stored, in bytes of its record. A larger response must pass through within
        /// `timeout`, too.
        public var maximumEntrySize = 1 << 20
        /// How long an entry is kept after it was stored or confirmed, in seconds; a pinned entry is kept a year. Redis
        /// may evict any of them earlier, by its `maxmemory-policy`.
        public var lifetime: TimeInterval = 7 * 86_400
        /// Gets each failure, on a queue for that. A failure that lasts is reported at most once for each `pause`. By
        /// default it is a warning of swift-log, of the logger `RedisStorage`; nil for no report.
        public var onFailure: (@Sendable (RedisFailure) -> Void)? = { Logger(label: "RedisStorage").warning("\($0)") }

        /// - Parameter prefix: see `prefix`; not empty.
        public init(_ server: Server, prefix: String) {
            precondition(!prefix.isEmpty, "Caches without a prefix would share their entries.")
            self.server = server
            self.prefix = prefix
        }

        /// The commands and keys that the storage uses, as Redis's access control list wants them: `ACL SETUSER cache
        /// on >password` and this. `SCAN` gives the names of all keys of the database, whatever the prefix.
        public var accessRules: String {
            let commands = [
                "evalsha", "script|load", "select", "info", "scan", "time", "unlink", "exists", "rename", "pexpire",
                "pttl", "hget",
                "hgetall", "hmget", "hset", "hdel", "hlen", "hexists", "hkeys", "hincrby", "zadd", "zrem", "zscore",
                "zrangebyscore",
                "zpopmin",
            ]
            return "~\(prefix):* -@all " + commands.map { "+" + $0 }.joined(separator: " ")
        }

        /// Whether the network between this machine and the server sees the password.
        var sendsPasswordInTheClear: Bool {
            guard password != nil, tls == nil, case .host(let name, _) = server else { return false }
            switch try? SocketAddress(ipAddress: name, port: 0) {
            case .v4?: return !name.hasPrefix("127.")
            case .v6?: return name != "::1"
            default: return name.lowercased() != "localhost"
            }
        }

        /// How the failures name the server.
        var address: String {
            switch server {
            case .host(let name, let port): "\(name):\(port)"
            case .socket(let path): path
            }
        }
    }
}
