import NIOCore

/// A reply of a Redis server, in version 2 of its protocol.
enum RESPValue: Sendable {
    case bytes(ByteBuffer)
    case number(Int)
    /// An error of one command. The connection can still be used.
    case error(String)
    case none
    case list([RESPValue])

    /// The text of a string or a number.
    var text: String? {
        switch self {
        case .bytes(let buffer): String(buffer: buffer)
        case .number(let number): String(number)
        case .error, .none, .list: nil
        }
    }

    var list: [RESPValue]? {
        if case .list(let values) = self { values } else { nil }
    }
}

/// The received bytes are not a reply of Redis.
struct NotRedis: Error {}

/// Reads replies from the received bytes. Every length that the peer states is checked before it is used.
enum RESPReader {
    /// The longest line: numbers, short answers and errors.
    static let longestLine = 64 << 10
    /// The limit of a list, which is read again from its start whenever more bytes have arrived. The longest lists that
    /// we request have 514 rows, besides those of `SCAN`.
    private static let mostMembers = 1 << 14
    private static let deepest = 4

    /// Removes the first reply from the buffer; nil if its end has not arrived.
    /// - Parameter longestString: in bytes.
    static func next(_ buffer: inout ByteBuffer, longestString: Int) throws(NotRedis) -> RESPValue? {
        var reader = buffer
        guard let value = try parse(&reader, longestString, depth: 0) else { return nil }
        buffer = reader
        return value
    }

    private static func parse(_ reader: inout ByteBuffer, _ longest: Int, depth: Int) throws(NotRedis) -> RESPValue? {
        guard depth < deepest else { throw NotRedis() }
        guard let kind = reader.getInteger(at: reader.readerIndex, as: UInt8.self) else { return nil }
        // Checked before the line is complete, since a peer with a different protocol may never end a line.
        guard "+-:$*".utf8.contains(kind) else { throw NotRedis() }
        guard let line = try readLine(&reader) else { return nil }
        let rest = line.dropFirst()
        switch UnicodeScalar(kind) {
        case "+": return .bytes(ByteBuffer(substring: rest))
        case "-": return .error(String(rest))
        case ":":
            guard let number = Int(rest) else { throw NotRedis() }
            return .number(number)
        case "$":
            guard let length = Int(rest), length >= -1, length <= longest else { throw NotRedis() }
            if length == -1 { return RESPValue.none }
            guard reader.readableBytes >= length + 2, let bytes = reader.readSlice(length: length) else { return nil }
            guard reader.readInteger(as: UInt16.self) == 0x0D0A else { throw NotRedis() }
            return .bytes(bytes)
        default:
            guard let count = Int(rest), count >= -1, count <= mostMembers else { throw NotRedis() }
            if count == -1 { return RESPValue.none }
            var members: [RESPValue] = []
            for _ in 0..<count {
                guard let member = try parse(&reader, longest, depth: depth + 1) else { return nil }
                members.append(member)
            }
            return .list(members)
        }
    }

    /// The line without its end; nil if the end has not arrived.
    private static func readLine(_ reader: inout ByteBuffer) throws(NotRedis) -> String? {
        let bytes = reader.readableBytesView.prefix(longestLine)
        guard let end = bytes.firstIndex(of: 0x0D) else {
            if bytes.count == longestLine { throw NotRedis() }
            return nil
        }
        guard bytes.index(after: end) < bytes.endIndex else { return nil }
        guard bytes[end + 1] == 0x0A else { throw NotRedis() }
        let line = String(decoding: bytes[..<end], as: UTF8.self)
        reader.moveReaderIndex(to: end + 2)
        return line
    }
}

/// A command with its arguments, as it is sent to the server.
struct RESPCommand: Sendable {
    private let name: Name
    private let arguments: [ByteBuffer]

    private enum Name {
        case plain
        case script(Script, keyCount: Int)
    }

    init(_ arguments: String...) {
        name = .plain
        self.arguments = arguments.map { ByteBuffer(string: $0) }
    }

    init(_ arguments: [String]) {
        name = .plain
        self.arguments = arguments.map { ByteBuffer(string: $0) }
    }

    init(_ script: Script, keys: [String], _ arguments: [ByteBuffer]) {
        name = .script(script, keyCount: keys.count)
        self.arguments = keys.map { ByteBuffer(string: $0) } + arguments
    }

    init(_ script: Script, keys: [String], _ arguments: String...) {
        self.init(script, keys: keys, arguments.map { ByteBuffer(string: $0) })
    }

    /// - Parameter digests: the names that the server gave to the scripts.
    func write(to buffer: inout ByteBuffer, _ digests: [Script: String]) {
        var arguments = arguments
        if case .script(let script, let keyCount) = name {
            arguments =
                ["EVALSHA", digests[script] ?? "", String(keyCount)].map { ByteBuffer(string: $0) } + arguments
        }
        buffer.writeString("*\(arguments.count)\r\n")
        for argument in arguments {
            buffer.writeString("$\(argument.readableBytes)\r\n")
            buffer.writeImmutableBuffer(argument)
            buffer.writeString("\r\n")
        }
    }
}
