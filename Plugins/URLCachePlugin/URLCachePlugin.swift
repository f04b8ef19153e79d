import Foundation
import PackagePlugin

/// `swift package urlcache why https://example.com/feed.json`: the inspector of the package `Tools`, run from a
/// package that depends on this one.
///
/// The tool reads its command line with swift-argument-parser, and this package must not depend on that. So the plugin
/// builds and runs the package `Tools`, with the plugin's folder for the build. On macOS the build and the loads of
/// URLs need `--disable-sandbox`.
@main
struct URLCachePlugin: CommandPlugin {
    func performCommand(context: PluginContext, arguments: [String]) throws {
        guard let root = Self.sources(context.package) else { throw Problem("The package DiskURLCache was not found.") }
        let folders = [
            "--package-path", root.appendingPathComponent("Tools").path,
            "--scratch-path", context.pluginWorkDirectoryURL.path,
        ]
        // Standard output is the tool's alone, so that `--json` can be piped. SwiftPM writes a plugin's standard error
        // to standard output, too, so the lines of the build go to a file.
        let log = context.pluginWorkDirectoryURL.appendingPathComponent("build.log")
        guard FileManager.default.createFile(atPath: log.path, contents: nil),
            let file = FileHandle(forWritingAtPath: log.path)
        else { throw Problem("\(log.path) cannot be written.") }
        let build = try Self.run(
            ["swift", "build", "--product", "urlcache"] + Self.lean + folders, output: file,
            progress: Progress(of: log.path))
        guard build == 0 else {
            let lines = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
            throw Problem("urlcache could not be built:\n\(lines)")
        }
        let status = try Self.run(["swift", "run", "--quiet", "--skip-build"] + folders + ["urlcache"] + arguments)
        if status != 0 { throw Problem("urlcache exited with status \(status).") }
    }

    /// Leaves out of the build what only an editor, a debugger and tests need.
    private static let lean = ["--disable-index-store", "-debug-info-format", "none"]

    /// - Parameters:
    ///   - output: the file for standard output and standard error; nil for those of the plugin.
    ///   - progress: shows on the terminal what the command is doing.
    private static func run(_ arguments: [String], output: FileHandle? = nil, progress: Progress? = nil) throws -> Int32
    {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = arguments
        if let output {
            process.standardOutput = output
            process.standardError = output
        }
        try process.run()
        while progress != nil, process.isRunning {
            progress?.show()
            Thread.sleep(forTimeInterval: 0.5)
        }
        process.waitUntilExit()
        progress?.end()
        return process.terminationStatus
    }

    /// The folder of this package: the package itself, or a dependency that has the product.
    private static func sources(_ package: Package) -> URL? {
        if package.products.contains(where: { $0.name == "DiskURLCache" }) { return package.directoryURL }
        return package.dependencies.lazy.compactMap { sources($0.package) }.first
    }
}

/// The last line of a build's log, on the terminal: the first build takes minutes, and silence looks like a program
/// that hangs. Neither standard output nor standard error would do, since SwiftPM makes one of them.
struct Progress {
    private let log: String
    private let start = Date()
    private let terminal = FileHandle(forWritingAtPath: "/dev/tty")

    init(of log: String) { self.log = log }

    func show() {
        // The usual case: it is built, and the command follows at once.
        let seconds = Int(Date().timeIntervalSince(start))
        guard let terminal, seconds >= 2 else { return }
        let lines = (try? String(contentsOfFile: log, encoding: .utf8))?.split(separator: "\n")
        let step = lines?.last.map { " \($0.prefix(48))" } ?? ""
        terminal.write(Data("\r\u{1B}[KBuilding urlcache, \(seconds) s (only once):\(step)".utf8))
    }

    func end() { if Date().timeIntervalSince(start) >= 2 { terminal?.write(Data("\r\u{1B}[K".utf8)) } }
}

struct Problem: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
