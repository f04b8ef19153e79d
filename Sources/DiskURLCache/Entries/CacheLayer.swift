/// Where responses are stored. The raw value is the spelling in the event log.
public enum CacheLayer: String, Sendable, Hashable {
    /// The memory layer.
    case memory
    /// The disk layer.
    case disk
    /// One of ``DiskURLCache/Configuration/fallbackDirectories``.
    case fallback
}
