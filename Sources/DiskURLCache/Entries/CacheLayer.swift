/// Where responses are stored. The names of the cases are the spelling in the event log.
public enum CacheLayer: String, Sendable, Hashable, Codable {
    /// The memory layer.
    case memory
    /// The disk layer.
    case disk
    /// One of ``DiskURLCache/Configuration/fallbackDirectories``.
    case fallback
}
