import Dispatch

#if canImport(CFNetwork)
    import CoreFoundation
    import Foundation
#endif

/// Where a protocol's client is to be called: one place, in order.
protocol ClientQueue: Sendable {
    func enqueue(_ work: @escaping @Sendable () -> Void)
}

extension DispatchQueue: ClientQueue {
    func enqueue(_ work: @escaping @Sendable () -> Void) { async(execute: work) }
}

// CFNetwork is the system's loader: where it is, protocols are called on its threads.
#if canImport(CFNetwork)
    /// The thread that called `startLoading`, in the run-loop modes of that moment.
    ///
    /// `@unchecked Sendable`: constant, and the two functions used may be called from any thread.
    final class ClientThread: ClientQueue, @unchecked Sendable {
        private let loop: CFRunLoop
        private let modes: CFArray

        /// On the thread that it will stand for.
        init() {
            loop = CFRunLoopGetCurrent()
            let common = CFRunLoopMode.defaultMode.rawValue as String
            let current = CFRunLoopCopyCurrentMode(loop)?.rawValue as String? ?? common
            modes = (current == common ? [common] : [common, current]) as CFArray
        }

        func enqueue(_ work: @escaping @Sendable () -> Void) {
            CFRunLoopPerformBlock(loop, modes, work)
            CFRunLoopWakeUp(loop)
        }
    }
#endif
