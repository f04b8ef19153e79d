import Foundation
import Testing

@Suite("Documentation")
struct SampleTests {
    /// Where the library's module lies that these tests were built with.
    private static let modules = URL(fileURLWithPath: CommandLine.arguments.first ?? "")
        .deletingLastPathComponent().appendingPathComponent("Modules").path

    private static let compiler: String? = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        .map { "\($0)/swiftc" }.first { FileManager.default.isExecutableFile(atPath: $0) }

    @Test(
        .enabled(if: compiler != nil, "needs swiftc on the PATH"),
        .enabled(
            if: FileManager.default.fileExists(atPath: modules + "/DiskURLCache.swiftmodule"),
            "needs the module beside the tests"))
    func everySampleOfReadmeAndArticlesCompiles() throws {
        let root = URL(fileURLWithPath: #filePath)
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let check = Process()
        check.executableURL = root.appendingPathComponent(".ci/check-samples")
        check.arguments = [Self.modules]
        let pipe = Pipe()
        check.standardOutput = pipe
        check.standardError = pipe
        try check.run()
        let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        check.waitUntilExit()
        #expect(check.terminationStatus == 0, "\(output)")
        #expect(output.contains("samples compile"))
    }
}
