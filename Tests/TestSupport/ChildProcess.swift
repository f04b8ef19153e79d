#if os(Linux)
    import Foundation
    import Testing

    /// A second process: this test binary again, running the one test that does what `mode` says.
    public final class ChildProcess: @unchecked Sendable {
        // `@unchecked Sendable`: used by one test, from one thread at a time.
        private let process = Process()
        private let output = Pipe()
        private let input = Pipe()
        private var buffer = Data()
        private let mode: String

        private static let prefix = "DISKURLCACHE_CHILD_"

        private static let nobody = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

        /// Whether a child can run without root's rights: any user but root can; root needs a binary that others may
        /// run.
        public static let canBeNobody: Bool = {
            guard getuid() == 0 else { return true }
            guard let binary = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") else {
                return false
            }
            let process = Process()
            process.executableURL = URL(fileURLWithPath: nobody[0])
            process.arguments = nobody.dropFirst() + ["/usr/bin/test", "-x", binary]
            guard (try? process.run()) != nil else { return false }
            process.waitUntilExit(of: "the child")
            return process.terminationStatus == 0
        }()

        /// What the parent told the child; nil in a process that is no child.
        public static func argument(_ name: String) -> String? {
            ProcessInfo.processInfo.environment[prefix + name]
        }

        /// Tells the parent something.
        public static func say(_ line: String) {
            let bytes = Array("@@\(line)\n".utf8)
            _ = bytes.withUnsafeBytes { write(1, $0.baseAddress, $0.count) }
        }

        /// - Parameter file: of the test target whose `ChildMain` runs.
        public init(
            _ mode: String, directory: String, _ arguments: [String: String] = [:], asNobody: Bool = false,
            under wrapper: [String] = [], file: String = #fileID
        ) throws {
            self.mode = mode
            let binary = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
            var command = [binary, "--testing-library", "swift-testing", "--filter", Self.main(file)]
            if asNobody, getuid() == 0 { command = Self.nobody + command }
            command = wrapper + command
            process.executableURL = URL(fileURLWithPath: command[0])
            process.arguments = Array(command.dropFirst())
            var environment = ProcessInfo.processInfo.environment
            environment[Self.prefix + "MODE"] = mode
            environment[Self.prefix + "DIRECTORY"] = directory
            for (name, value) in arguments { environment[Self.prefix + name] = value }
            process.environment = environment
            process.standardOutput = output
            process.standardInput = input
            process.standardError = FileHandle.nullDevice
            try process.run()
        }

        private static func main(_ file: String) -> String { "\(file.prefix { $0 != "/" })\\.ChildMain" }

        public var identifier: pid_t { process.processIdentifier }

        /// The next thing that the child says; nil when it ended.
        public func nextLine() -> String? {
            while true {
                while let end = buffer.firstIndex(of: 10) {
                    let line = String(decoding: buffer[buffer.startIndex..<end], as: UTF8.self)
                    buffer.removeSubrange(buffer.startIndex...end)
                    if let mark = line.range(of: "@@") { return String(line[mark.upperBound...]) }
                }
                guard hasMore() else { return nil }
                let more = output.fileHandleForReading.availableData
                if more.isEmpty { return nil }
                buffer.append(more)
            }
        }

        /// Waits until the child says something or ends. A child that does neither is killed, when it has done nothing
        /// for a minute, or when it has worked for many.
        private func hasMore() -> Bool {
            let times = TestLength.isLong ? 100 : 3
            var (patience, work) = (Patience(times: times), self.work)
            let limit = work + times * 10 * Patience.seconds * sysconf(Int32(_SC_CLK_TCK))
            var descriptor = pollfd(fd: output.fileHandleForReading.fileDescriptor, events: Int16(POLLIN), revents: 0)
            while poll(&descriptor, 1, 100) == 0 {
                // On a busy machine a child may get little of the processors for minutes.
                let now = self.work
                if now > work { (patience, work) = (Patience(times: times), now) }
                guard patience.isOver() || now > limit else { continue }
                Issue.record("waited for a line of the child \(mode)")
                kill()
                return false
            }
            return true
        }

        /// The time that the child had of the processors, in ticks of the system.
        private var work: Int {
            // The command's name may have spaces; it is the second field, in parentheses.
            guard let text = try? String(contentsOfFile: "/proc/\(identifier)/stat", encoding: .utf8),
                let fields = text.split(separator: ")").last?.split(separator: " "), fields.count > 12
            else { return 0 }
            return (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0)
        }

        /// Everything it still says, to its end.
        public func remainingLines() -> [String] {
            var lines: [String] = []
            while let line = nextLine() { lines.append(line) }
            process.waitUntilExit(of: "the child")
            return lines
        }

        /// Gives a child a line to read.
        public func send(_ line: String) {
            try? input.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
        }

        /// Lets a child go on that waits in `waitForParent`.
        public func release() {
            try? input.fileHandleForWriting.close()
        }

        public static func waitForParent() {
            _ = FileHandle.standardInput.availableData
        }

        /// Returns once the child has stopped itself; false when it ended instead.
        public func waitUntilStopped() -> Bool {
            var information = siginfo_t()
            // Not reaped, which is for `Process` to do.
            let options = WSTOPPED | WEXITED | WNOWAIT | WNOHANG
            var patience = Patience()
            repeat {
                guard waitid(P_PID, id_t(process.processIdentifier), &information, options) == 0 else { return false }
                // Zero until there is something to tell.
                if information.si_code != 0 { return information.si_code == CLD_STOPPED }
                usleep(1_000)
            } while !patience.isOver()
            return false
        }

        public func kill() {
            signal(SIGKILL)
            process.waitUntilExit(of: "the child")
        }

        public func signal(_ number: Int32) {
            Glibc.kill(process.processIdentifier, number)
        }

        /// How a forked child ended; one that does not is killed.
        public static func status(of child: pid_t) -> Int32 {
            var (status, patience) = (Int32(0), Patience())
            while waitpid(child, &status, WNOHANG) == 0 {
                if patience.isOver() { Glibc.kill(child, SIGKILL) }
                usleep(1_000)
            }
            return status
        }

        public var wasKilled: Bool {
            process.terminationReason == .uncaughtSignal && process.terminationStatus == SIGKILL
        }
        public var succeeded: Bool { process.terminationReason == .exit && process.terminationStatus == 0 }
    }
#endif
