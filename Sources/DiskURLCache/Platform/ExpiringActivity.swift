import Foundation

/// Time that the system grants before it suspends the process.
enum ExpiringActivity {
    /// See `PassTime.Activity`. Systems that suspend no process always grant the time.
    static func request(_ handler: @escaping @Sendable (_ isExpired: Bool) -> Void) {
        #if canImport(Darwin) && !os(macOS)
            ProcessInfo.processInfo.performExpiringActivity(withReason: "DiskURLCache", using: handler)
        #else
            DispatchQueue.global(qos: .utility).async { handler(false) }
        #endif
    }
}
