import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A real `redis-server` of a test's own, on a free port of the loopback interface. It keeps nothing on disk.
///
/// `@unchecked Sendable`: the test that started it starts and stops it, and nobody else does.
final class RedisServer: @unchecked Sendable {
    private(set) var port: Int
    let folder: URL
    private let options: [String]
    private let cliOptions: [String]
    private var process: Process?

    static let path = find("redis-server")
    static let isInstalled = path != nil && find("redis-cli") != nil

    private static func find(_ name: String) -> String? {
        ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"].map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// - Parameters:
    ///   - options: of `redis-server`.
    ///   - cliOptions: of `redis-cli`, where it needs some to get in.
    init(_ options: [String] = [], cli cliOptions: [String] = []) throws {
        port = try Self.freePort()
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("redis-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        self.options = options
        self.cliOptions = cliOptions
        for _ in 0..<20 {
            do {
                try start()
                return
            } catch let problem as Problem where problem.description.contains("Address already in use") {
                // Another test's server or connection has got the port since it was free.
                port = try Self.freePort()
            }
        }
        try start()
    }

    deinit {
        kill()
        try? FileManager.default.removeItem(at: folder)
    }

    static func freePort() throws -> Int {
        #if canImport(Glibc)
            let kind = Int32(SOCK_STREAM.rawValue)
        #else
            let kind = SOCK_STREAM
        #endif
        let socket = socket(AF_INET, kind, 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, length) == 0 && getsockname(socket, $0, &length) == 0
            }
        }
        guard isBound else { throw CocoaError(.fileWriteUnknown) }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    /// Returns when it takes connections.
    func start() throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Self.path ?? "")
        // A port that is given in the options stands in place of this one.
        process.arguments =
            ["--bind", "127.0.0.1", "--port", "\(port)", "--save", "", "--appendonly", "no", "--dir", folder.path]
            + options.map { $0.replacingOccurrences(of: "PORT", with: "\(port)") }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        try process.run()
        self.process = process
        var said = ""
        while !said.contains("eady to accept connections") {
            let data = output.fileHandleForReading.availableData
            guard !data.isEmpty else { throw Problem(description: "redis-server does not start: \(said)") }
            said += String(decoding: data, as: UTF8.self)
        }
        // What it says later must not fill the pipe.
        output.fileHandleForReading.readabilityHandler = { _ = $0.availableData }
    }

    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    /// At once, as by a crash.
    func kill() {
        guard let process else { return }
        Self.send(SIGKILL, process)
        process.waitUntilExit()
        (process.standardOutput as? Pipe)?.fileHandleForReading.readabilityHandler = nil
        self.process = nil
    }

    /// It stays connected and says nothing any more.
    func wedge() { process.map { Self.send(SIGSTOP, $0) } }
    func unwedge() { process.map { Self.send(SIGCONT, $0) } }

    private static func send(_ signal: Int32, _ process: Process) {
        #if canImport(Glibc)
            Glibc.kill(process.processIdentifier, signal)
        #elseif canImport(Musl)
            Musl.kill(process.processIdentifier, signal)
        #else
            Darwin.kill(process.processIdentifier, signal)
        #endif
    }

    /// What `redis-cli` prints.
    @discardableResult
    func cli(_ arguments: String...) throws -> String { try cli(arguments) }

    @discardableResult
    func cli(_ arguments: [String]) throws -> String {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: Self.find("redis-cli") ?? "")
        process.arguments = ["-p", "\(port)", "--no-auth-warning"] + cliOptions + arguments
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self).trimmingCharacters(in: .newlines)
    }

    /// All that is in the server, as text.
    func everything() throws -> String {
        let script = """
            local found = {}
            for _, key in ipairs(redis.call('KEYS', '*')) do
                found[#found + 1] = key
                local kind = redis.call('TYPE', key).ok
                local values = kind == 'hash' and redis.call('HGETALL', key)
                    or kind == 'zset' and redis.call('ZRANGE', key, 0, -1) or {}
                for _, value in ipairs(values) do found[#found + 1] = value end
            end
            return table.concat(found, ' ')
            """
        return try cli("EVAL", script, "0")
    }

    func keys(_ pattern: String) throws -> [String] {
        try cli("KEYS", pattern).split(separator: "\n").map(String.init).filter { !$0.isEmpty }
    }
}
