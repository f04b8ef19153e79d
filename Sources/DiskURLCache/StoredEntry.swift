import Foundation

/// The value that the layers exchange: one stored response with its body. Immutable; replaced as a whole.
final class StoredEntry: Sendable {
    let metadata: EntryMetadata
    let body: Data

    init(metadata: EntryMetadata, body: Data) {
        self.metadata = metadata
        self.body = body
    }
}

/// All that is kept of a stored response besides its body.
struct EntryMetadata: Sendable, Hashable {
    /// Orders entries of one key by the time they were stored, the clock set back or not: larger is more recent.
    /// Given by `EntrySequence`.
    var sequence: UInt64
    /// The response's URL; nil where URLs are kept off the disk, and then the request's URL stands in.
    var url: String?
    var response: Response
    /// When the entry was stored, or last freshened by a 304.
    var storedAt: Date
    /// `.allowedInMemoryOnly` entries never reach the disk.
    var isMemoryOnly: Bool
    /// Property-list values only; what else a caller put into `userInfo` lives in the memory layer alone.
    var userInfo: [String: PropertyValue]
    /// Names of the groups the entry belongs to, for removal by tag.
    var tags: [String]
    /// Pinned entries are evicted last, within the pinned share of the capacity.
    var isPinned: Bool

    enum Response: Sendable, Hashable {
        case http(StoredResponse)
        /// A response that is not HTTP (`data:`, `file:`, or made by hand).
        case other(mimeType: String?, expectedContentLength: Int64, textEncodingName: String?)
    }

    /// The HTTP facts; nil for a response that is not HTTP.
    var http: StoredResponse? {
        if case .http(let response) = response { response } else { nil }
    }
}

/// A property-list value: the part of `userInfo` that can be written to disk.
indirect enum PropertyValue: Sendable, Hashable {
    case string(String)
    case integer(Int64)
    case real(Double)
    case boolean(Bool)
    case date(Date)
    case data(Data)
    case array([PropertyValue])
    case dictionary([String: PropertyValue])
}
