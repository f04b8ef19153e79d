extension DiskURLCache {
    /// Where responses are stored. The names of the cases are the spelling in the event log.
    public enum Layer: String, Sendable, Hashable, Codable {
        /// The memory layer.
        case memory
        /// The disk layer.
        case disk
        /// One of ``DiskURLCache/DiskURLCache/Configuration/fallbackDirectories``.
        case fallback
    }
}
