extension DiskURLCache {
    /// Where responses are stored. Its name is what is printed, and written to the event log.
    public struct Layer: Sendable, Hashable, CodedByForm, PrintedByDescription {
        private let name: String

        /// A storage of the app (`DiskURLCache.EntryStorage`), by its name.
        package init(named name: String) { self.name = name }

        package init(form name: String) { self.name = name }
        package var form: String { name }

        // Computed, not constants: a lookup compares layers, and reading a constant would be a call.

        /// The memory layer.
        public static var memory: Layer { Layer(named: "memory") }
        /// The disk layer.
        public static var disk: Layer { Layer(named: "disk") }
        /// One of ``DiskURLCache/DiskURLCache/Configuration/fallbackDirectories``.
        public static var fallback: Layer { Layer(named: "fallback") }

        package var printedText: String { name }
    }
}
