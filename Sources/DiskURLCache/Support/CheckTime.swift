#if canImport(Glibc) || canImport(Musl)
    import Synchronization
#endif

/// The time of the next look at something that others may have changed. Many lookups ask; once a second one of them is
/// told to look. Times are nanoseconds of the monotonic clock.
package final class CheckTime: Sendable {
    private static let interval: UInt64 = 1_000_000_000

    #if canImport(Glibc) || canImport(Musl)
        private let next = Atomic<UInt64>(0)
    #else
        // `Atomic` needs iOS 18 and macOS 15.
        private let next = Mutex<UInt64>(0, isContended: true)
    #endif

    package init() {}

    /// True for one of the calling threads: that thread is to look now.
    @inline(__always)
    package func isDue(at now: UInt64) -> Bool {
        #if canImport(Glibc) || canImport(Musl)
            let due = next.load(ordering: .relaxed)
            let later = now &+ Self.interval
            guard now >= due else { return false }
            return next.compareExchange(expected: due, desired: later, ordering: .acquiringAndReleasing).exchanged
        #else
            return next.withLock { next in
                guard now >= next else { return false }
                next = now &+ Self.interval
                return true
            }
        #endif
    }

    /// The caller looks now of its own accord, so that the next look is due in a second.
    package func restart() { set(MonotonicTime.nanoseconds &+ Self.interval) }

    func set(_ time: UInt64) {
        #if canImport(Glibc) || canImport(Musl)
            next.store(time, ordering: .releasing)
        #else
            next.withLock { $0 = time }
        #endif
    }
}
