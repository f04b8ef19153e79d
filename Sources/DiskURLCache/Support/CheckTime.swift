/// The time of the next look at something that others may have changed. Many lookups ask; once a second one of them is
/// told to look. Times are nanoseconds of the monotonic clock.
package final class CheckTime: Sendable {
    private static let interval: UInt64 = 1_000_000_000

    private let next = SharedTime()

    package init() {}

    /// True for one of the calling threads: that thread is to look now.
    @inline(__always)
    package func isDue(at now: UInt64) -> Bool { next.moves(to: now &+ Self.interval, ifReachedAt: now) }

    /// Whether it is time to look. It stays so until somebody does.
    @inline(__always)
    package func isReached(at now: UInt64) -> Bool { next.isReached(at: now) }

    /// The caller looks now of its own accord, so that the next look is due in a second.
    package func restart() { set(MonotonicTime.nanoseconds &+ Self.interval) }

    func set(_ time: UInt64) { next.set(time) }
}
