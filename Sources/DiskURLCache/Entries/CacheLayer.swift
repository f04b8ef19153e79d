/// Where a stored answer came from.
public enum CacheLayer: String, Sendable, Hashable {
    case memory
    case disk
    /// One of ``DiskURLCache/Configuration/fallbackDirectories``.
    case fallback
}
