#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// What child processes of the tests of this target do; does nothing in an ordinary run.
    @Suite struct ChildMain {
        @Test(.enabled(if: ChildProcess.argument("MODE") != nil, "runs in child processes only")) func run() throws {
            let directory = try #require(ChildProcess.argument("DIRECTORY"))
            switch ChildProcess.argument("MODE") {
            case "kill": try KillScenario.runInChild(directory)
            case "load": try CrashLoad.runInChild(directory)
            case "share": ProcessScenarios.share(directory)
            case "hold": ProcessScenarios.hold(directory)
            case "take": ProcessScenarios.take(directory)
            case "stop": ProcessScenarios.stop(directory)
            case "remove": try SharedRemovalTests.removeInChild(directory)
            case "fork": try ProcessScenarios.fork(directory)
            case "limits": ProcessScenarios.limits(directory)
            case "clear": ClearingTests.runInChild(directory)
            case "soak": SoakTests.runInChild(directory)
            case "fuzz": try DecoderFuzzTests.runInChild()
            case "model": ModelPeer.runInChild()
            case "owner": try OwnerScenario.runInChild(directory)
            case "nobody": ProcessScenarios.nobody(directory)
            case "end": try ProcessEndTests.runInChild(directory)
            case "fetches": try FetchesOfProcessesTests.runInChild(directory)
            case "verify": VerifyingTests.runInChild(directory)
            case "trace": try ProtocolTraceTests.runInChild(directory)
            default: Issue.record("no such mode")
            }
        }
    }
#endif
