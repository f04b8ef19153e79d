import Dispatch

/// The queue or thread on which a protocol's client is called, in order.
protocol ClientQueue: Sendable {
    func enqueue(_ work: @escaping @Sendable () -> Void)
}

extension DispatchQueue: ClientQueue {
    func enqueue(_ work: @escaping @Sendable () -> Void) { async(execute: work) }
}

/// The run-loop modes in which a protocol's client is called, on Apple platforms.
///
/// In URLSession's classic loading mode the client belongs to the thread and the modes of `startLoading`. In the mode
/// that came with iOS 18.4 and macOS 15.4 (`usesClassicLoadingMode`) a protocol starts on the session's delegate queue,
/// mostly on a worker whose run loop never runs, and the client may be called from any thread.
enum ClientModes {
    /// - Parameters:
    ///   - running: the mode in which the starting thread's run loop runs; nil if it does not run.
    ///   - common: the name of all common modes. A delegate queue that is the main queue starts protocols on the main
    ///     thread, whose run loop is in another mode while the user scrolls; operations of that queue run there, too.
    /// - Returns: nil if a queue is used instead of the run loop.
    static func modes(running: String?, common: String) -> [String]? { running.map { [common, $0] } }
}
