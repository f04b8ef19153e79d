import Foundation
import Testing

/// Runs the program `urlcache`, which is built beside the tests.
struct Tool {
    struct Run {
        let status: Int32
        /// What it printed, errors too.
        let output: String

        var lines: [Substring] { output.split(separator: "\n") }
    }

    /// The program's folder: that of the tests on Linux, and of their bundle on macOS.
    private static let folder: URL = {
        let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundleURL
        let own = URL(fileURLWithPath: CommandLine.arguments[0])
        return (bundle ?? own).deletingLastPathComponent()
    }()

    static let program = folder.appendingPathComponent("urlcache")

    /// Standard output is a file: a pipe that nothing empties would stop the program.
    static func run(
        _ arguments: String..., program: URL = program, output: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Run {
        try run(arguments, program: program, output: output, sourceLocation: sourceLocation)
    }

    static func run(
        _ arguments: [String], program: URL = program, output: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Run {
        let scratch = try Scratch()
        let file = output ?? scratch.path("output")
        if output == nil { try Data().write(to: URL(fileURLWithPath: file)) }
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        let errors = scratch.path("errors")
        try Data().write(to: URL(fileURLWithPath: errors))
        process.standardOutput = try FileHandle(forWritingTo: URL(fileURLWithPath: file))
        process.standardError = try FileHandle(forWritingTo: URL(fileURLWithPath: errors))
        try process.run()
        let end = Date(timeIntervalSinceNow: 120)
        while process.isRunning, Date() < end { usleep(2_000) }
        if process.isRunning {
            Issue.record("urlcache \(arguments) did not end in 120 s", sourceLocation: sourceLocation)
            process.terminate()
        }
        process.waitUntilExit()
        let texts = try (output == nil ? [file, errors] : [errors]).map { path in
            String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
        }
        return Run(status: process.terminationStatus, output: texts.joined())
    }
}

/// Expects a status, and a pattern in a line of the output.
func expect(
    _ status: Int32, _ pattern: String, _ run: Tool.Run, sourceLocation: SourceLocation = #_sourceLocation
) {
    let isFound = run.output.range(of: "(?m)" + pattern, options: .regularExpression) != nil
    #expect(
        run.status == status && isFound, "status \(run.status), no \"\(pattern)\" in:\n\(run.output.prefix(2_000))",
        sourceLocation: sourceLocation)
}

/// A folder that is removed at the end of the test.
final class Scratch: Sendable {
    let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("urlcache-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

    /// A cache of made-up entries, the same ones each time.
    func demo(entries: Int, hosts: Int? = nil, withLoads: Bool = true) throws -> String {
        let cache = path("cache")
        var arguments = ["demo", cache, "--entries", "\(entries)"]
        if let hosts { arguments += ["--hosts", "\(hosts)"] }
        if !withLoads { arguments.append("--without-loads") }
        let run = try Tool.run(arguments)
        expect(0, "^\(entries) entries", run)
        return cache
    }

    /// The regular files of a folder, by name.
    func files(in path: String) throws -> [URL] {
        try FileManager.default.contentsOfDirectory(at: URL(fileURLWithPath: path), includingPropertiesForKeys: nil)
            .sorted { $0.path < $1.path }
    }

    static func mode(of path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }
}
