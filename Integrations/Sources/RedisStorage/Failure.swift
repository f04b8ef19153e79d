/// A fault between a `RedisStorage` and its server, and how to mend it. It makes no call of the cache fail: a lookup is
/// a miss, and a store is dropped.
public struct RedisFailure: Error, Sendable, Hashable, CustomStringConvertible {
    @nonexhaustive public enum Code: Sendable, Hashable {
        /// No connection: nothing listens at the address, the name is not known, or the server's certificate is not
        /// valid.
        case unreachable
        /// There was no answer within the configured time.
        case timedOut
        /// The peer is not a Redis server, or ended the connection.
        case notRedis
        /// The server refuses: the password is wrong, the user may not use a command, or the server is still loading.
        case refused
        /// The server's memory is full and it evicts nothing. Reported once, until a store succeeds again.
        case full
        /// An entry is larger than the configuration allows, or has more than 128 tags and groups (`Cache-Groups`).
        case tooLarge
        /// The bytes under a name are not the bytes that were stored there. They were removed.
        case damaged
        /// A removal did not reach the server. It is sent before the next command. Until then, other processes may use
        /// the entries, and so may this program after a restart. Reported once, until it was sent.
        case removalDelayed
        /// The database has more keys than are searched for removed entries, some 50 million, or a group has more than
        /// 20 million entries. Removed entries that were not found take up memory until they expire.
        case tooManyKeys
        /// The password is sent to another machine without TLS. Reported once; the password is sent all the same.
        case passwordInTheClear
        /// `secret` has fewer than 16 bytes, so that it can be guessed: the storage is not made.
        case shortSecret
    }

    public let code: Code
    /// The fault, and how to mend it.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
