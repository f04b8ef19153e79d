import Foundation

/// Time that the system grants before it suspends the process.
enum ExpiringActivity {
    /// Asks for time, as `ProcessInfo.performExpiringActivity` does: the handler is called with false on another thread, and the process
    /// runs until the handler returns; with true when there is no time, or no more. Other systems always grant it.
    static func request(_ handler: @escaping @Sendable (_ isExpired: Bool) -> Void) {
        #if canImport(Darwin) && !os(macOS)
            ProcessInfo.processInfo.performExpiringActivity(withReason: "DiskURLCache", using: handler)
        #else
            DispatchQueue.global(qos: .utility).async { handler(false) }
        #endif
    }
}
