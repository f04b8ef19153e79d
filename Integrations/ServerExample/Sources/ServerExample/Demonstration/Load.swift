import Foundation

/// What wrk measured: 32 connections that ask for 200 articles in turn, each as fast as it is answered.
struct Load {
    static let articles = 200

    let answered: Int
    /// The three in seconds.
    let duration: Double
    let median: Double
    let slowest: Double
    /// Answers other than 200, and connections that failed.
    let errors: Int

    /// Where wrk is; nil where it is not installed.
    static var tool: String? {
        ["/usr/bin/wrk", "/usr/local/bin/wrk", "/opt/homebrew/bin/wrk"].first(
            where: FileManager.default.isExecutableFile)
    }

    private static let script = """
        local number = 0
        request = function()
            number = number % \(articles) + 1
            return wrk.format("GET", "/articles/" .. number)
        end
        done = function(summary, latency)
            local errors = summary.errors
            io.write(string.format("RESULT %d %d %d %d %d\\n", summary.requests, summary.duration,
                latency:percentile(50), latency:percentile(99),
                errors.status + errors.connect + errors.read + errors.write + errors.timeout))
        end
        """

    init(of url: String, seconds: Int, tool: String, folder: URL) throws {
        let script = folder.appendingPathComponent("load.lua")
        try Self.script.write(to: script, atomically: true, encoding: .utf8)
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: tool)
        process.arguments = [
            "--threads=1", "--connections=32", "--duration=\(seconds)s", "--script=\(script.path)", url,
        ]
        process.standardOutput = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        let numbers = text.split(separator: "\n").last { $0.hasPrefix("RESULT ") }?
            .split(separator: " ").dropFirst().compactMap { Double($0) }
        guard let numbers, numbers.count == 5, numbers[0] > 0 else { throw Failure("wrk measured nothing:\n\(text)") }
        (answered, errors) = (Int(numbers[0]), Int(numbers[4]))
        (duration, median, slowest) = (numbers[1] / 1e6, numbers[2] / 1e6, numbers[3] / 1e6)
    }
}
