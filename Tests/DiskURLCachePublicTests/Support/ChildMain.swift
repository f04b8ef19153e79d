#if os(Linux)
    import Foundation
    import Testing

    /// What child processes of the tests of this target do; does nothing in an ordinary run.
    @Suite struct ChildMain {
        @Test(.enabled(if: ChildProcess.argument("MODE") != nil, "runs in child processes only")) func run() throws {
            let directory = try #require(ChildProcess.argument("DIRECTORY"))
            switch ChildProcess.argument("MODE") {
            case "one line": try OneLineTests.runInChild(directory)
            case "late line": try OneLineTests.runLateInChild(directory)
            case "https": try HTTPSTests.runInChild(directory)
            case "full log": GrowthTests.runWithFullLog(directory)
            case "growth": try GrowthTests.runInChild(directory)
            case "fast body": try FastBodyTests.runInChild(directory)
            default: Issue.record("no such mode")
            }
        }
    }
#endif
