import Foundation

extension CacheInspector {
    /// What is known of one stored response without its body.
    public struct Record: Sendable {
        let name: RecordName
        let sequence: UInt64?

        /// The file's name in the folder `records`.
        public let fileName: String
        /// Why the record cannot be used: ``CacheError/Code/damaged``, ``CacheError/Code/foreign`` or
        /// ``CacheError/Code/notReadable``. Nil for one that can, as far as it was read.
        public let problem: CacheError?
        /// Nil when the cache keeps URLs off the disk (`Configuration.keepsURLs`), and for what cannot be read.
        public let url: String?
        /// The method that the response answers; nil for a response that is not HTTP, and for what cannot be read.
        public let method: String?
        /// The status; nil for a response that is not HTTP, and for what cannot be read.
        public let status: Int?
        /// The stored header fields, in their order; empty for what cannot be read.
        public let fields: [(name: String, value: String)]
        /// Bytes of the body, decoded.
        public let bodyLength: Int
        /// Bytes on disk, in allocated blocks.
        public let allocated: Int
        /// When the response was stored, or last confirmed by a 304; nil for what cannot be read.
        public let storedAt: Date?
        /// When it was last used, as the index knows it; the file's date when there is no index. Accurate to seconds, and some seconds late
        /// while a program uses the cache.
        public let lastUsed: Date?
        /// Seconds since the origin made or confirmed it (RFC 9111 §4.2.3).
        public let age: TimeInterval?
        /// When it becomes stale, by the response's own fields and the standard heuristic; in the past when it is. Rules
        /// of the app are not known here. Nil when nothing says how long it is fresh.
        public let freshUntil: Date?
        /// See ``CacheTreatment/tags``.
        public let tags: [String]
        /// See ``CacheTreatment/isPinned``.
        public let isPinned: Bool

        init(
            _ name: RecordName, _ reading: RecordReading, path: String, status file: FileStatus?, lastUsed: Date?,
            now: Date
        ) {
            self.name = name
            fileName = name.text
            allocated = file?.allocated ?? 0
            self.lastUsed = lastUsed ?? file.map { Date(recordSeconds: $0.modifiedSeconds) }
            guard case .record(let record) = reading else {
                problem =
                    switch reading {
                    case .unreadable(let error): CacheError(.notReadable, path: path, errno: error.code)
                    case .foreign: CacheError(.foreign, path: path)
                    case .damaged, .missing, .record: CacheError(.damaged, path: path)
                    }
                (sequence, url, method, status, fields) = (nil, nil, nil, nil, [])
                (bodyLength, storedAt, age, freshUntil, tags, isPinned) = (0, nil, nil, nil, [], false)
                return
            }
            let metadata = record.metadata
            problem = nil
            sequence = record.header.sequence
            url = metadata.url
            method = metadata.http?.method
            status = metadata.http?.status
            fields = metadata.http?.fields.fields.map { ($0.name, $0.value) } ?? []
            bodyLength = record.header.bodyLength
            storedAt = metadata.storedAt
            tags = metadata.tags
            isPinned = metadata.isPinned
            guard let response = metadata.http else {
                (age, freshUntil) = (nil, nil)
                return
            }
            let freshness = Freshness(
                of: ReuseFacts(response),
                options: CachingOptions(), now: now)
            age = TimeInterval(freshness.age)
            freshUntil =
                freshness.source == .none
                ? nil : now.addingTimeInterval(TimeInterval(freshness.lifetime.subtractingSaturated(freshness.age)))
        }
    }
}
