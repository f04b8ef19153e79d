import DiskURLCache
import Foundation

extension DiskURLCache.Inspector {
    /// The facts of one stored response, without its body.
    public struct Record: Sendable {
        let name: RecordName
        let sequence: UInt64?

        /// The file's name in the folder `records`.
        public let fileName: String
        /// Why the record cannot be used: `DiskURLCache.Error.Code.damaged`, `DiskURLCache.Error.Code.foreign` or
        /// `DiskURLCache.Error.Code.notReadable`. Nil for a usable record, as far as it was read.
        public let problem: DiskURLCache.Error?
        /// Nil when the cache keeps URLs off the disk (`Configuration.keepsURLs`), and for an unreadable record.
        public let url: String?
        /// The method that the response answers; nil for a response that is not HTTP, and for an unreadable record.
        public let method: String?
        /// The status; nil for a response that is not HTTP, and for an unreadable record.
        public let status: Int?
        /// The stored header fields, in their order; empty for an unreadable record.
        public let fields: [(name: String, value: String)]
        /// Bytes of the body, decoded.
        public let bodyLength: Int
        /// Bytes on disk, in allocated blocks.
        public let allocated: Int
        /// When the response was stored, or last confirmed by a 304; nil for an unreadable record.
        public let storedAt: Date?
        /// The time of last use in the index; without an index, the file's date. Accurate to seconds, and some seconds late
        /// while a program uses the cache.
        public let lastUsed: Date?
        /// Seconds since the origin made or confirmed the response (RFC 9111 §4.2.3).
        public let age: TimeInterval?
        /// When the response becomes stale or became stale, by its own fields and the standard heuristic. Rules of the app are not
        /// known here. Nil when neither gives a lifetime.
        public let freshUntil: Date?
        /// See `DiskURLCache.Options.tags`.
        public let tags: [String]
        /// See `DiskURLCache.Options.isPinned`.
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
                    case .unreadable(let error): DiskURLCache.Error(.notReadable, path: path, errno: error.code)
                    case .foreign: DiskURLCache.Error(.foreign, path: path)
                    case .damaged, .missing, .record: DiskURLCache.Error(.damaged, path: path)
                    }
                (sequence, url, method, status, fields) = (nil, nil, nil, nil, [])
                (bodyLength, storedAt, age, freshUntil, tags, isPinned) = (0, nil, nil, nil, [], false)
                return
            }
            let metadata = record.metadata
            problem = nil
            sequence = record.footer.sequence
            url = metadata.url
            method = metadata.http?.method
            status = metadata.http?.status
            fields = metadata.http?.fields.fields.map { ($0.name, $0.value) } ?? []
            bodyLength = record.footer.bodyLength
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
