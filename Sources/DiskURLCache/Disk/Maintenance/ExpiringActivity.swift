import Foundation

/// Asks the system for time before it suspends the process.
enum ExpiringActivity {
    /// See `PassTime.Activity`. On systems that do not suspend processes, time is always granted.
    static func request(_ handler: @escaping @Sendable (_ isExpired: Bool) -> Void) {
        #if canImport(Darwin) && !os(macOS)
            ProcessInfo.processInfo.performExpiringActivity(withReason: "DiskURLCache", using: handler)
        #else
            DispatchQueue.global(qos: .utility).async { handler(false) }
        #endif
    }
}
