#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Android)
    import Android
#endif

/// Seconds of a clock that nobody sets; coarse, since it is read at each lookup.
enum MonotonicTime {
    static var seconds: Double {
        var time = timespec()
        #if canImport(Darwin)
            clock_gettime(CLOCK_MONOTONIC_RAW_APPROX, &time)
        #else
            clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        #endif
        return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
    }
}
