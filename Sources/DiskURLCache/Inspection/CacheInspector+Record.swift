import Foundation

extension CacheInspector {
    /// What is known of one stored response without its body.
    public struct Record: Sendable {
        /// What a look at the file found.
        public enum State: Sendable, Hashable {
            /// A record that can be used, as far as it was read.
            case intact
            /// Its bytes are not those that were written. A cache removes it when it comes across it.
            case damaged
            /// Not a regular file, of another version, or moved here under another record's name. A cache leaves it
            /// alone.
            case foreign
            /// The file cannot be read; `errno` is the system's error number.
            case unreadable(errno: Int32)
        }

        let name: RecordName
        let sequence: UInt64?

        /// The file's name in the folder `records`.
        public let fileName: String
        /// What a look at the file found.
        public let state: State
        /// Nil where the cache keeps URLs off the disk (`Configuration.keepsURLs`), and for what cannot be read.
        public let url: String?
        /// The method that the response answers; nil for a response that is not HTTP, and for what cannot be read.
        public let method: String?
        /// The status; nil for a response that is not HTTP, and for what cannot be read.
        public let status: Int?
        /// The stored header fields, in their order; empty for what cannot be read.
        public let fields: [(name: String, value: String)]
        /// Names of the request fields that the response was selected by.
        public let varyFields: [String]
        /// Bytes of the body, decoded.
        public let bodyLength: Int
        /// Bytes on disk, in allocated blocks.
        public let allocated: Int
        /// When the response was stored, or last confirmed by a 304; nil for what cannot be read.
        public let storedAt: Date?
        /// When it was last used, as the index knows it; the file's date where there is no index. Accurate to seconds, and some seconds late
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

        /// The media type without parameters, in lower case; nil where the response has none.
        public var contentType: String? {
            fields.first { $0.name.lowercased() == "content-type" }.map {
                String($0.value.prefix { $0 != ";" }).lowercased()
            }
        }

        init(_ name: RecordName, _ reading: RecordReading, status file: FileStatus?, lastUsed: Date?, now: Date) {
            self.name = name
            fileName = name.text
            allocated = file?.allocated ?? 0
            self.lastUsed = lastUsed ?? file.map { Date(recordSeconds: $0.modifiedSeconds) }
            guard case .record(let record) = reading else {
                state =
                    switch reading {
                    case .unreadable(let error): .unreadable(errno: error.code)
                    case .foreign: .foreign
                    case .damaged, .missing, .record: .damaged
                    }
                (sequence, url, method, status, fields, varyFields) = (nil, nil, nil, nil, [], [])
                (bodyLength, storedAt, age, freshUntil, tags, isPinned) = (0, nil, nil, nil, [], false)
                return
            }
            let metadata = record.metadata
            state = .intact
            sequence = record.header.sequence
            url = metadata.url
            method = metadata.http?.method
            status = metadata.http?.status
            fields = metadata.http?.fields.fields.map { ($0.name, $0.value) } ?? []
            varyFields = metadata.varyKey.fields.map(\.name)
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
                options: CachingOptions(DiskURLCache.HTTPOptions(), isOffline: false), now: now)
            age = TimeInterval(freshness.age)
            freshUntil =
                freshness.source == .none
                ? nil : now.addingTimeInterval(TimeInterval(freshness.lifetime.subtractingSaturated(freshness.age)))
        }
    }
}
