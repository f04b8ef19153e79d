import Foundation

/// Runs this program again, to load the same URLs through a new cache on the same directory.
enum NewProcess {
    private static let variable = "QUICKSTART_DIRECTORY"

    /// The directory to use, when this is the new process.
    static var directory: URL? {
        ProcessInfo.processInfo.environment[variable].map { URL(fileURLWithPath: $0, isDirectory: true) }
    }

    static func load(_ urls: [URL], directory: URL) throws -> [Row] {
        let process = Process()
        process.executableURL =
            Bundle.main.executableURL ?? URL(fileURLWithPath: CommandLine.arguments.first ?? "QuickStart")
        process.arguments = urls.map(\.absoluteString)
        process.environment = ProcessInfo.processInfo.environment.merging([variable: directory.path]) { $1 }
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw Failure(status: process.terminationStatus) }
        return try JSONDecoder().decode([Row].self, from: output)
    }

    static func report(_ rows: [Row]) throws {
        FileHandle.standardOutput.write(try JSONEncoder().encode(rows))
    }

    struct Failure: Error, CustomStringConvertible {
        let status: Int32
        var description: String { "the new process ended with status \(status)" }
    }
}
