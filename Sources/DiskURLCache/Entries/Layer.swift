extension DiskURLCache {
    /// Where responses are stored. Its name is what is printed, and written to the event log.
    public struct Layer: RawRepresentable, Sendable, Hashable, Codable, PrintedByDescription {
        /// The name.
        public let rawValue: String

        /// A storage of the app (`DiskURLCache.EntryStorage`), by its name.
        public init(rawValue: String) { self.rawValue = rawValue }

        // Computed, not constants: a lookup compares layers, and reading a constant would be a call.

        /// The memory layer.
        public static var memory: Layer { Layer(rawValue: "memory") }
        /// The disk layer.
        public static var disk: Layer { Layer(rawValue: "disk") }
        /// One of ``DiskURLCache/DiskURLCache/Configuration/fallbackDirectories``.
        public static var fallback: Layer { Layer(rawValue: "fallback") }

        package var printedText: String { rawValue }
    }
}
