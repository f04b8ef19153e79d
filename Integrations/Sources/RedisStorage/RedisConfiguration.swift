import Foundation
import Logging
import NIOCore
import NIOPosix
import NIOSSL

extension RedisStorage {
    /// Where the server is, and how long it may take.
    public struct Configuration: Sendable {
        @nonexhaustive public enum Server: Sendable, Hashable {
            case host(String, port: Int = 6379)
            /// A Unix socket on this machine.
            case socket(path: String)
        }

        public var server: Server
        /// The user of Redis's access control list; nil for the default user.
        public var user: String?
        /// Without `tls` it can be read on the way to another machine; `onFailure` reports that.
        public var password: String?
        /// The number of the logical database.
        public var database = 0
        /// Encrypts the connection; nil, the default, does not. `.makeClientConfiguration()` checks the server's
        /// certificate and name against the system's roots; set its `trustRoots` for an authority of your own.
        public var tls: TLSConfiguration?
        /// The name that the server's certificate must have, if it is not the name in `server`.
        public var tlsName: String?
        /// The beginning of each key's name. Caches with the same prefix in a database share their entries; caches with
        /// different prefixes share nothing. Use one for each application and environment, such as `shop-staging`.
        public let prefix: String
        /// A secret that the processes know, but not the server and its other users. A record that was written without
        /// it is ignored, and names, variants, URLs, header fields and messages cannot be read or guessed without it;
        /// bodies can be read. Use 32 random bytes; fewer than 16 are an error when the storage is made. A cache with
        /// a different secret, or with none, finds nothing. Nil, the default: everybody with write access can forge
        /// responses.
        public var secret: Data?
        /// The seconds that a call waits for the server at most; then it is a miss.
        public var timeout: TimeInterval = 0.1
        /// The seconds that connecting, checking the password and loading the scripts may take together. This happens
        /// in the background; no call waits for it longer than `timeout`.
        public var connectTimeout: TimeInterval = 1
        /// The seconds after a failure during which no command is sent and every lookup is a miss. Then one call tries,
        /// and all others are misses until it has an answer.
        public var pause: TimeInterval = 1
        /// The largest number of connections to the server. Each carries many calls at a time.
        public var connections = 2
        /// The largest entry that is stored, in bytes. The variants of a URL together are no larger either: a lookup
        /// transfers all of them within `timeout`, so allow more time for larger ones. If a new variant leaves too
        /// little room for the others, some of them are removed. A larger one that another process has stored is a
        /// miss.
        public var maximumEntrySize = 1 << 20
        /// How long an entry is kept after it was stored or confirmed, in seconds; a pinned entry is kept a year. Redis
        /// may evict any of them earlier, by its `maxmemory-policy`.
        public var lifetime: TimeInterval = 7 * 86_400
        /// The limit of steps when entries are erased or checked one by one, in case a server never says that it is
        /// done. A search takes some 500 keys in each step.
        var mostSteps = 100_000
        /// Finds the addresses of a host; nil for the system's way.
        var resolver: (any Resolver & Sendable)?
        /// Called for each failure, on its own queue. A lasting failure is reported at most once in each `pause`. By
        /// default it writes a warning to the logger `RedisStorage` of swift-log; nil for no report.
        public var onFailure: (@Sendable (RedisFailure) -> Void)? = { Logger(label: "RedisStorage").warning("\($0)") }

        /// - Parameter prefix: see `prefix`; not empty.
        public init(_ server: Server, prefix: String) {
            precondition(!prefix.isEmpty, "Caches without a prefix would share their entries.")
            self.server = server
            self.prefix = prefix
        }

        /// The rules for the commands and keys that the storage uses, for Redis's access control list: append them to
        /// `ACL SETUSER cache on >password`. `SCAN` returns the names of all keys of the database, whatever their
        /// prefix.
        public var accessRules: String {
            let commands = [
                "evalsha", "script|load", "select", "info", "scan", "time", "unlink", "exists", "rename", "pexpire",
                "pttl", "hget", "hgetall", "hmget", "hset", "hdel", "hstrlen", "hkeys", "hincrby", "zadd", "zrem",
                "zscore", "zrangebyscore", "zrandmember", "zpopmin",
            ]
            return "~\(prefix):* -@all " + commands.map { "+" + $0 }.joined(separator: " ")
        }

        /// Whether the password is readable on the network between this machine and the server.
        var sendsPasswordInTheClear: Bool {
            guard password != nil, tls == nil, case .host(let name, _) = server else { return false }
            switch try? SocketAddress(ipAddress: name, port: 0) {
            case .v4?: return !name.hasPrefix("127.")
            case .v6?: return name != "::1"
            default: return name.lowercased() != "localhost"
            }
        }

        /// The name of the server in failures.
        var address: String {
            switch server {
            case .host(let name, let port): "\(name):\(port)"
            case .socket(let path): path
            }
        }
    }
}

extension RedisStorage.Configuration: CustomStringConvertible, CustomReflectable {
    /// The server, the database and the prefix, in one line. Neither the password nor the secret is printed.
    public var description: String {
        "\(address), database \(database), prefix \(prefix), \(tls == nil ? "without" : "with") TLS,"
            + " \(secret == nil ? "without a" : "with a") secret"
    }

    /// Without properties, so that `dump` and failed tests print `description`, too.
    public var customMirror: Mirror {
        Mirror(self, children: [Mirror.Child](), ancestorRepresentation: .suppressed)
    }
}
