import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Runs this program again as a child process: for the origin, and for measurements of a whole process.
enum Child {
    static let flag = "--child"

    static func run(_ arguments: [String]) throws {
        switch arguments.first {
        case "origin": try Origin.serve()
        case "peak": try PeakMemoryRows.child(Array(arguments.dropFirst()))
        case "soak": try SoakRows.child(Array(arguments.dropFirst()))
        case "tls": try TLSRows.child(Array(arguments.dropFirst()))
        default: throw Failure(message: "unknown child \(arguments)")
        }
    }

    struct Failure: Error {
        var message: String
    }

    static let executable = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()

    /// Starts a child, waits until it ends, and decodes what it printed. `wrapper` is a command that runs the command
    /// after it.
    static func value<Value: Decodable>(
        _ type: Value.Type, of arguments: [String], wrapper: [String] = []
    ) throws -> Value {
        let command = wrapper + [executable.path, flag] + arguments
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: command[0])
        process.arguments = Array(command.dropFirst())
        process.standardOutput = output
        try process.run()
        let printed = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Failure(message: "\(command.joined(separator: " ")) ended with \(process.terminationStatus)")
        }
        return try JSONDecoder().decode(type, from: printed)
    }

    /// What `value(_:of:)` reads.
    static func print(_ value: some Encodable) throws {
        FileHandle.standardOutput.write(try JSONEncoder().encode(value))
    }
}

/// The origin as a child process, which ends when this value is released.
final class OriginProcess {
    /// `http://127.0.0.1:PORT`
    let base: String
    private let process = Process()
    private let input = Pipe()

    init() throws {
        let output = Pipe()
        process.executableURL = Child.executable
        process.arguments = [Child.flag, "origin"]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        guard let port = UInt16(line.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw Child.Failure(message: "the origin said \(line)")
        }
        base = "http://127.0.0.1:\(port)"
    }

    deinit {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
    }

    func request(
        _ kind: Origin.Kind, bytes: Int, _ number: Int, for side: String = "", delay: Int = 0
    ) -> URLRequest {
        Self.request(base, kind, bytes: bytes, number, for: side, delay: delay)
    }

    /// `number` and `side` make the URL unique.
    static func request(
        _ base: String, _ kind: Origin.Kind, bytes: Int, _ number: Int, for side: String = "", delay: Int = 0
    ) -> URLRequest {
        var url = "\(base)/\(kind.rawValue)/item-\(number).json?bytes=\(bytes)&lang=en&side=\(side.filter(\.isLetter))"
        if delay > 0 { url += "&delay=\(delay)" }
        return Content.request(URL(string: url)!)
    }
}
