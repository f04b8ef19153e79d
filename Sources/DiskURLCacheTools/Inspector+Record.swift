import DiskURLCache
import Foundation

extension DiskURLCache.Inspector {
    /// The facts of one stored response, without its body.
    public struct Record: Sendable {
        let name: RecordName
        /// Nil for an unreadable record.
        private let footer: RecordFooter?
        private let metadata: EntryMetadata?
        private let freshness: Freshness?
        private let now: Date

        var sequence: UInt64? { footer?.sequence }

        /// The file's name in the folder `records`.
        public var fileName: String { name.text }
        /// Why the record cannot be used: `DiskURLCache.Error.Code.damaged`, `DiskURLCache.Error.Code.foreign` or
        /// `DiskURLCache.Error.Code.notReadable`. Nil if what was read of it is intact.
        public let problem: DiskURLCache.Error?
        /// The URL. Nil if the cache does not write URLs (`Configuration.keepsURLs`), and for an unreadable record.
        public var url: String? { metadata?.url }
        /// The method that the response answers; nil for a response that is not HTTP, and for an unreadable record.
        public var method: String? { metadata?.http?.method }
        /// The status; nil for a response that is not HTTP, and for an unreadable record.
        public var status: Int? { metadata?.http?.status }
        /// The stored header fields, in their order; empty for an unreadable record.
        public var fields: [(name: String, value: String)] {
            metadata?.http?.fields.fields.map { ($0.name, $0.value) } ?? []
        }
        /// The length of the decoded body in bytes.
        public var bytes: Int { footer?.bodyLength ?? 0 }
        /// The bytes that the record takes on disk, in whole blocks.
        public let bytesOnDisk: Int
        /// When the response was stored, or last confirmed by a 304; nil for an unreadable record.
        public var storedAt: Date? { metadata?.storedAt }
        /// The time of last use according to the index; without an index, the date of the file. Accurate to a second;
        /// while a program uses the cache, it may be some seconds old.
        public let lastUsed: Date?
        /// Seconds since the origin made or confirmed the response (RFC 9111 §4.2.3).
        public var age: TimeInterval? { freshness.map { TimeInterval($0.age) } }
        /// When the response becomes or became stale, by its own fields or the standard guess, and by the rules of the
        /// cache that was given to `records(verifyingBodies:by:progress:)`. Nil if the response has no lifetime.
        public var freshUntil: Date? {
            guard let freshness, freshness.source != .none else { return nil }
            return now.addingTimeInterval(-TimeInterval(freshness.staleness))
        }
        /// See `DiskURLCache.Options.tags`.
        public var tags: [String] { metadata?.tags.filter(CacheCore.isTagOfApp) ?? [] }
        /// See `DiskURLCache.Options.isPinned`.
        public var isPinned: Bool { metadata?.isPinned == true }

        init(
            _ name: RecordName, _ reading: RecordReading, path: String, status file: FileStatus?, lastUsed: Date?,
            by cache: DiskURLCache?, now: Date
        ) {
            self.name = name
            self.now = now
            bytesOnDisk = file?.spaceTaken ?? 0
            self.lastUsed = lastUsed ?? file.map { Date(recordSeconds: $0.modifiedSeconds) }
            switch reading {
            case .record(let record):
                problem = nil
                footer = record.footer
                metadata = record.metadata
            case .unreadable(let error):
                problem = DiskURLCache.Error(.notReadable, path: path, errno: error.code)
                footer = nil
                metadata = nil
            case .foreign, .damaged, .missing:
                let code: DiskURLCache.Error.Code = if case .foreign = reading { .foreign } else { .damaged }
                problem = DiskURLCache.Error(code, path: path)
                footer = nil
                metadata = nil
            }
            let url = metadata?.url
            freshness = metadata?.http.map { response in
                let options = cache.flatMap { $0.options(for: response, of: url) } ?? CachingOptions()
                return Freshness(of: ReuseFacts(response).governed(by: options), options: options, now: now)
            }
        }
    }
}

extension DiskURLCache {
    /// The options for a stored response, by the rules of this cache; nil if the URL is not known.
    fileprivate func options(for response: StoredResponse, of url: String?) -> CachingOptions? {
        guard let url = url.flatMap({ URL(string: $0) }) else { return nil }
        var request = URLRequest(url: url)
        request.httpMethod = response.method
        return core.cachingOptions(for: core.resolve(Request(request)), response: response.fields)
    }
}
