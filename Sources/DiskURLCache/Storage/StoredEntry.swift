import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The value that the layers exchange: one stored response with its body. Immutable; replaced as a whole.
final class StoredEntry: @unchecked Sendable {
    // @unchecked: `made` is reached only while this object's `SharedLock` is held, and the rest is constant.
    let metadata: EntryMetadata
    let body: Data
    /// Whether the response was selected by no request field and is whole, as nearly all are. Known in advance: it is
    /// asked at each hit.
    let answersEveryRequest: Bool
    /// What the entry takes in memory, in bytes: the body and an estimate of the rest. Asked several times at each store.
    let memoryCost: Int
    /// The object that a caller stored, `userInfo` of any type included.
    private let given: CachedURLResponse?
    /// What is made when first asked for.
    @exclusivity(unchecked) private var made = Made()

    private struct Made {
        /// Where none was given.
        var cached: CachedURLResponse?
        /// Where a load judged the entry.
        var reuseFacts: ReuseFacts?
        /// What a load delivered last.
        var delivered: (form: DeliveredForm, response: URLResponse)?
    }

    /// All that the response which a load delivers depends on, besides the entry.
    struct DeliveredForm: Equatable {
        var url: URL
        var presentation: Presentation
        /// In seconds.
        var age: Int
        /// This cache's member of `Cache-Status`, where it is to be there.
        var cacheStatus: String?
    }

    init(metadata: EntryMetadata, body: Data, presented given: CachedURLResponse? = nil) {
        self.metadata = metadata
        self.body = body
        self.given = given
        answersEveryRequest = metadata.varyKey == .none && metadata.http?.status != 206
        // 600 bytes: the objects around the body.
        memoryCost = body.count + 600 + (metadata.http?.fields.estimatedSize ?? 0)
    }

    /// Whether `URLCache`'s own methods may hand this entry out for a request.
    func answers(_ request: URLRequest) -> Bool {
        answersEveryRequest || metadata.answers(HeaderFields(request))
    }

    /// The entry as Foundation hands it out. The request's URL stands in where the record holds none.
    func cachedURLResponse(for request: URLRequest) -> CachedURLResponse? {
        given ?? request.url.map { cachedURLResponse(requestedURL: $0) }
    }

    func cachedURLResponse(requestedURL url: URL) -> CachedURLResponse {
        if let given { return given }
        if let response = SharedLock.withLock(of: self, { made.cached }) { return response }
        let response = makeCachedURLResponse(requestedURL: url)
        return SharedLock.withLock(of: self) {
            // Another thread may have been faster: all get one object.
            if let response = made.cached { return response }
            made.cached = response
            return response
        }
    }

    /// The response as a load delivers it. Loads within one second, whose `Age` is the same, share the object: making
    /// one costs more than the rest of a hit.
    func urlResponse(_ form: DeliveredForm, _ make: () -> URLResponse) -> URLResponse {
        if let last = SharedLock.withLock(of: self, { made.delivered }), last.form == form { return last.response }
        let response = make()
        SharedLock.withLock(of: self) { made.delivered = (form, response) }
        return response
    }

    /// What decides about the reuse of the response, worked out once. Nil for a response that is not HTTP.
    var reuseFacts: ReuseFacts? {
        if let facts = SharedLock.withLock(of: self, { made.reuseFacts }) { return facts }
        let facts = metadata.http.map { ReuseFacts($0) }
        SharedLock.withLock(of: self) { made.reuseFacts = facts }
        return facts
    }

    /// The object that was handed out for this entry, if one was.
    var presentedResponse: CachedURLResponse? { given ?? SharedLock.withLock(of: self) { made.cached } }
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

    /// What tells the variants of one key apart.
    var varyKey: VaryKey { http?.vary ?? .none }

    /// Whether `URLCache`'s own methods may hand this response out for a request with these fields: it was selected by
    /// the same ones, and is no part that would pass for a whole.
    func answers(_ fields: HeaderFields) -> Bool {
        varyKey.matches(fields) && http?.status != 206
    }
}

/// Hands out numbers that grow with every stored entry, across launches too: the wall clock in microseconds, or one
/// more than the last number where the clock was set back or stands still.
final class EntrySequence: Sendable {
    private let last = Mutex<UInt64>(0)

    func next(at date: Date) -> UInt64 {
        let microseconds = UInt64(exactly: (max(0, date.timeIntervalSince1970) * 1_000_000).rounded(.down)) ?? 0
        return last.withLock { last in
            last = max(last &+ 1, microseconds)
            return last
        }
    }
}
