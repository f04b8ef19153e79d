/// A fault between a `RedisStorage` and its server, and the remedy. No call of the cache fails for it: a lookup is a
/// miss, and a store is dropped.
public struct RedisFailure: Error, Sendable, Hashable, CustomStringConvertible {
    public enum Code: Sendable, Hashable {
        /// No connection: no process listens there, the name is not known, or the peer's certificate does not hold.
        case unreachable
        /// No answer within the time that the configuration gives.
        case timedOut
        /// The peer is not a Redis server, or ended the connection.
        case notRedis
        /// The server says no: a wrong password, a command that the user may not use, a server that is loading.
        case refused
        /// The server's memory is full and it evicts nothing. Told once, until a store succeeds again.
        case full
        /// An entry is larger than the configuration allows.
        case tooLarge
        /// The bytes under a name are not the bytes that were stored there. They were removed.
        case damaged
        /// A removal did not reach the server. It is sent before the next command. Until then, other processes may use
        /// the entries, and so may this program after a restart.
        case removalDelayed
        /// The password is sent without TLS to another machine. Told once; the password is sent.
        case passwordInTheClear
    }

    public let code: Code
    /// The fault and the remedy.
    public let description: String

    init(_ code: Code, _ description: String) {
        self.code = code
        self.description = description
    }
}
