/// Intervals for Instruments, and lines for Console at the level of debugging, on Apple platforms: each load of this
/// library's loader, and each lookup and store by the system's. Elsewhere nothing, at no cost. No URL is in them.
enum Trace {}
