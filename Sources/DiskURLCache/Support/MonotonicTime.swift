import Foundation

/// The time of the monotonic clock, which nobody can set.
package enum MonotonicTime {
    static var seconds: Double { Double(nanoseconds) * 1e-9 }

    /// In nanoseconds, precise enough to tell which of two uses was the later one.
    package static var nanoseconds: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(truncatingIfNeeded: time.tv_sec) &* 1_000_000_000 &+ UInt64(truncatingIfNeeded: time.tv_nsec)
    }
}
