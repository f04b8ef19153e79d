import Foundation

/// The time of a clock that is never set.
package enum MonotonicTime {
    /// Coarse and cheap, since each lookup reads it.
    static var seconds: Double {
        var time = timespec()
        #if canImport(Darwin)
            clock_gettime(CLOCK_MONOTONIC_RAW_APPROX, &time)
        #else
            clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        #endif
        return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
    }

    /// Exact, to tell which of two uses was the later one.
    package static var nanoseconds: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(truncatingIfNeeded: time.tv_sec) &* 1_000_000_000 &+ UInt64(truncatingIfNeeded: time.tv_nsec)
    }
}
