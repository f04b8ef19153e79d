#if os(Linux)
    import Foundation

    /// What this process takes, as the system counts it.
    public enum ProcessMemory {
        /// The most memory that was ever resident, in bytes.
        public static var highWater: Int { status("VmHWM") }
        /// The memory that is resident now, in bytes.
        public static var resident: Int { status("VmRSS") }
        /// Memory that is the process's own and writable: what `RLIMIT_DATA` limits.
        public static var data: Int { status("VmData") }

        private static func status(_ name: String) -> Int {
            let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
            let line = text.split(separator: "\n").first { $0.hasPrefix(name + ":") }
            return (line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0) << 10
        }
    }
#endif
