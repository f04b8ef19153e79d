import ExampleSupport
import Foundation

/// A second process of this program. It takes orders as lines of JSON on its standard input, and answers in the same
/// way. A helper exits when its input ends, so it exits with this process, in whatever way this process ends.
final class Helper {
    enum Role: String {
        case origin
        case worker
        case keeper
        case garbage
    }

    private let name: String
    private let process = Process()
    private let orders = Pipe()
    private let replies = Pipe()
    private var received = Data()

    init(_ role: Role, _ arguments: String...) throws {
        name = "\(role)"
        process.executableURL =
            Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments.first ?? "Fleet")
        process.arguments = [role.rawValue] + arguments
        process.standardInput = orders
        process.standardOutput = replies
        try process.run()
    }

    func send(_ order: some Encodable) throws {
        try orders.fileHandleForWriting.write(contentsOf: JSONEncoder().encode(order) + Data("\n".utf8))
    }

    /// Waits for the next answer.
    func receive<Reply: Decodable>(_ reply: Reply.Type = Reply.self) throws -> Reply {
        while true {
            if let end = received.firstIndex(of: UInt8(ascii: "\n")) {
                let line = received[..<end]
                received = Data(received[received.index(after: end)...])
                return try JSONDecoder().decode(Reply.self, from: line)
            }
            let data = replies.fileHandleForReading.availableData
            guard !data.isEmpty else { throw Failure("the process \"\(name)\" ended before its time") }
            received += data
        }
    }

    func ask<Reply: Decodable>(_ order: some Encodable, for reply: Reply.Type = Reply.self) throws -> Reply {
        try send(order)
        return try receive()
    }

    /// Waits until it has ended.
    func end() {
        try? orders.fileHandleForWriting.close()
        process.waitUntilExit()
    }
}

/// The side of the helper.
enum Orders {
    /// Each order as it comes. When the standard input ends, the process calls `cleanUp` and exits.
    static func stream<Order: Decodable & Sendable>(
        of order: Order.Type, cleanUp: @escaping @Sendable () -> Void = {}
    ) -> AsyncStream<Order> {
        AsyncStream { continuation in
            Thread.detachNewThread {
                while let line = readLine() {
                    guard let order = try? JSONDecoder().decode(Order.self, from: Data(line.utf8)) else { break }
                    continuation.yield(order)
                }
                cleanUp()
                exit(0)
            }
        }
    }

    static func reply(_ value: some Encodable) throws {
        let line = try JSONEncoder().encode(value) + Data("\n".utf8)
        // If the output has no reader, the standard input has ended too, and this process is about to exit.
        try? FileHandle.standardOutput.write(contentsOf: line)
    }
}

/// Shows that a process still writes to the folder: a lock on a file there, which ends with the process.
enum RunningMark {
    static func set(in folder: URL) { take(LOCK_SH, in: folder) }

    static func waitForOthers(in folder: URL) { take(LOCK_EX, in: folder) }

    private static func take(_ lock: Int32, in folder: URL) {
        let file = open(folder.appendingPathComponent("running").path, O_RDWR | O_CREAT, 0o600)
        _ = flock(file, lock)
    }
}

struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
