import Foundation

/// Everything about a stored response except its body.
package struct EntryMetadata: Sendable, Equatable {
    /// By reference: a lookup copies it from the record to the entry and the variant, and seldom changes it.
    private var contents: CopyOnWrite<Values>

    private struct Values: Sendable, Equatable {
        var sequence: UInt64
        var url: String?
        var response: Response
        var storedAt: Date
        var placement: EntryPlacement
        var userInfo: [String: PropertyValue]
        var tags: [String]
        var isPinned: Bool
    }

    /// Names the response and counts its changes (`EntrySequence`): a larger number is more recent, even if the clock
    /// was set back. The store gives it; 0 before.
    package var sequence: UInt64 {
        get { contents.values.sequence }
        set { contents.change { $0.sequence = newValue } }
    }
    /// The response's URL. Nil if URLs are not written to disk (`keepsURLs`): then the request's URL is used.
    package var url: String? {
        get { contents.values.url }
        set { contents.change { $0.url = newValue } }
    }
    var response: Response {
        get { contents.values.response }
        set { contents.change { $0.response = newValue } }
    }
    /// When the entry was stored, or last freshened by a 304.
    package var storedAt: Date {
        get { contents.values.storedAt }
        set { contents.change { $0.storedAt = newValue } }
    }
    /// In which layers the entry may be stored.
    var placement: EntryPlacement {
        get { contents.values.placement }
        set { contents.change { $0.placement = newValue } }
    }
    /// The values of `userInfo` that are property-list values. Only the memory layer keeps the others.
    var userInfo: [String: PropertyValue] {
        get { contents.values.userInfo }
        set { contents.change { $0.userInfo = newValue } }
    }
    /// Names of the groups the entry belongs to, for removal by tag.
    package var tags: [String] {
        get { contents.values.tags }
        set { contents.change { $0.tags = newValue } }
    }
    /// Pinned entries are evicted last, within the pinned share of the capacity.
    package var isPinned: Bool {
        get { contents.values.isPinned }
        set { contents.change { $0.isPinned = newValue } }
    }

    init(
        sequence: UInt64 = 0, url: String? = nil, response: Response, storedAt: Date, placement: EntryPlacement,
        userInfo: [String: PropertyValue] = [:], tags: [String] = [], isPinned: Bool = false
    ) {
        contents = CopyOnWrite(
            Values(
                sequence: sequence, url: url, response: response, storedAt: storedAt, placement: placement,
                userInfo: userInfo, tags: tags, isPinned: isPinned))
    }

    enum Response: Sendable, Equatable {
        case http(StoredResponse)
        /// A response that is not HTTP (`data:`, `file:`, or made by hand).
        case other(mimeType: String?, expectedContentLength: Int64, textEncodingName: String?)
    }

    /// The HTTP facts; nil for a response that is not HTTP.
    package var http: StoredResponse? {
        if case .http(let response) = response { response } else { nil }
    }

    /// A pin, a tag or a mark changes the entry. The 256th change carries into the time: at worst a refresh that is
    /// under way changes nothing.
    mutating func revise() { sequence = max(sequence, sequence &+ 1) }

    /// The lifetime of the response ends now. False if nothing changes: an earlier mark has ended it, or it is not HTTP
    /// and used by no load.
    mutating func markStale(at time: Date) -> Bool {
        guard case .http(var http) = response, http.staleSince == nil else { return false }
        http.staleSince = time
        response = .http(http)
        revise()
        return true
    }

    /// Whether both are of the same response, as the origin sent or last confirmed it. The number alone does not tell:
    /// two processes that store two variants at the same time may give both the same one.
    func isSameResponse(as other: EntryMetadata) -> Bool {
        sequence >> 8 == other.sequence >> 8 && varyKey == other.varyKey
    }

    /// Whether both are of one entry of a key, with nothing changed in between.
    package func isSameEntry(as other: EntryMetadata) -> Bool {
        sequence == other.sequence && varyKey == other.varyKey
    }

    /// Whether it is a 206, which answers ranges alone.
    var isPart: Bool { http?.status == 206 }

    /// The values that tell the variants of one key apart.
    package var varyKey: VaryKey { http?.vary ?? .none }

    /// Whether `URLCache`'s own methods may return this response for a request with these fields: `Vary` selects it,
    /// and it is not a 206, which the caller would take for the whole.
    func answers(_ request: inout FieldDigests) -> Bool {
        !isPart && varyKey.matches(&request)
    }
}

extension EntryMetadata {
    /// The same for memory alone, since the disk has not taken it or has been emptied.
    var offDisk: EntryMetadata {
        guard placement == .memoryAndDisk else { return self }
        var metadata = self
        metadata.placement = .offDisk
        return metadata
    }
}

/// In which layers an entry may be stored: decided when the response is stored, and kept through every later change,
/// but for `offDisk`.
enum EntryPlacement: Sendable, Equatable {
    case memoryAndDisk
    /// Never on disk, because the app or a delegate said so (`URLCache.StoragePolicy.allowedInMemoryOnly`, or a rule).
    case memoryOnly
    /// Not on disk: it expires too soon to be worth a file, or the disk did not take it.
    case offDisk
}
