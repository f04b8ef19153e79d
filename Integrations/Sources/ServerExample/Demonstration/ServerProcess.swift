import Foundation

/// A server as a separate process. It is killed if this value is released before the process has ended.
final class ServerProcess {
    let port: Int
    private let process = Process()
    private let log: URL

    var url: String { "http://127.0.0.1:\(port)" }
    var isRunning: Bool { process.isRunning }

    /// Returns when the server accepts requests.
    /// - Parameter log: the file to which the server writes its log.
    init(upstream: String, directory: URL, log: URL) throws {
        self.log = log
        try Data().write(to: log)
        let output = Pipe()
        process.executableURL =
            Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments.first ?? "ServerExample")
        process.arguments = ["serve", "--upstream", upstream, "--directory", directory.path]
        process.standardOutput = output
        process.standardError = try FileHandle(forWritingTo: log)
        try process.run()
        var text = ""
        while !text.hasSuffix("\n") {
            let data = output.fileHandleForReading.availableData
            guard !data.isEmpty else { throw Failure("a server did not start:\n\(Self.text(log))") }
            text += String(decoding: data, as: UTF8.self)
        }
        guard let port = Int(text.dropFirst("port ".count).dropLast()) else { throw Failure("no port: \(text)") }
        self.port = port
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }

    /// Sends SIGTERM, as a process manager does.
    func terminate() { process.terminate() }

    /// Waits until the process has ended.
    /// - Returns: its exit status; nil if a signal killed the process.
    func end() -> Int32? {
        process.waitUntilExit()
        return process.terminationReason == .exit ? process.terminationStatus : nil
    }

    /// The lines of the log that contain this text.
    func log(with text: String) -> [String] {
        Self.text(log).split(separator: "\n").map(String.init).filter { $0.contains(text) }
    }

    private static func text(_ log: URL) -> String {
        (try? String(contentsOf: log, encoding: .utf8)) ?? ""
    }
}

struct Failure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
