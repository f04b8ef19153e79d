import CSQLite
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What Apple's cache does: the record in a SQLite table, in WAL mode, with one transaction for each store. This is
/// SQLite at its best: statements are prepared once, and there is neither a framework nor an archiver in between.
final class SQLitePeer {
    struct Failure: Error {
        var message: String
    }

    private var database: OpaquePointer?
    private var insertStatement: OpaquePointer?
    private var selectStatement: OpaquePointer?
    // Bound values live until the statement has run: SQLITE_STATIC.
    private let unowned: sqlite3_destructor_type? = nil

    init(path: String) throws {
        try check(sqlite3_open(path, &database))
        try run("PRAGMA journal_mode = WAL")
        try run("PRAGMA synchronous = NORMAL")
        try run(
            """
            CREATE TABLE IF NOT EXISTS entries
            (key TEXT PRIMARY KEY, head BLOB, body BLOB, stored REAL, used REAL) WITHOUT ROWID
            """)
        try check(
            sqlite3_prepare_v2(
                database, "INSERT OR REPLACE INTO entries VALUES (?1, ?2, ?3, ?4, ?4)", -1, &insertStatement, nil))
        try check(
            sqlite3_prepare_v2(
                database, "SELECT head, body, stored FROM entries WHERE key = ?1", -1, &selectStatement, nil))
    }

    deinit {
        sqlite3_finalize(insertStatement)
        sqlite3_finalize(selectStatement)
        sqlite3_close(database)
    }

    func run(_ text: String) throws {
        try check(sqlite3_exec(database, text, nil, nil, nil))
    }

    func insert(_ key: String, head: Data, body: Data) throws {
        defer { sqlite3_reset(insertStatement) }
        try head.withUnsafeBytes { head in
            try body.withUnsafeBytes { body in
                var key = key
                try key.withUTF8 { key in
                    try key.withMemoryRebound(to: CChar.self) { key in
                        try check(sqlite3_bind_text(insertStatement, 1, key.baseAddress, Int32(key.count), unowned))
                        try check(sqlite3_bind_blob(insertStatement, 2, head.baseAddress, Int32(head.count), unowned))
                        try check(sqlite3_bind_blob(insertStatement, 3, body.baseAddress, Int32(body.count), unowned))
                        try check(sqlite3_bind_double(insertStatement, 4, 0))
                        try check(sqlite3_step(insertStatement))
                    }
                }
            }
        }
    }

    /// The stored body, copied out as a cache must.
    func body(of key: String) throws -> Data? {
        defer { sqlite3_reset(selectStatement) }
        var key = key
        return try key.withUTF8 { key in
            try key.withMemoryRebound(to: CChar.self) { key in
                try check(sqlite3_bind_text(selectStatement, 1, key.baseAddress, Int32(key.count), unowned))
                guard sqlite3_step(selectStatement) == SQLITE_ROW else { return nil }
                if let head = sqlite3_column_blob(selectStatement, 0) {
                    consume(Data(bytes: head, count: Int(sqlite3_column_bytes(selectStatement, 0))))
                }
                guard let body = sqlite3_column_blob(selectStatement, 1) else { return Data() }
                return Data(bytes: body, count: Int(sqlite3_column_bytes(selectStatement, 1)))
            }
        }
    }

    /// A table with `count` rows, in one transaction.
    static func filled(path: String, count: Int, body: Data) throws -> SQLitePeer {
        let peer = try SQLitePeer(path: path)
        try peer.run("BEGIN")
        for number in 0..<count { try peer.insert(key(number), head: head, body: body) }
        try peer.run("COMMIT")
        return peer
    }

    static func key(_ number: Int) -> String { Content.url(number).absoluteString }

    /// The header fields as a record holds them.
    static let head = Data(Content.headers.map { "\($0.key): \($0.value)\r\n" }.joined().utf8)

    private func check(_ code: Int32) throws {
        guard code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW else {
            throw Failure(message: String(cString: sqlite3_errmsg(database)))
        }
    }
}
