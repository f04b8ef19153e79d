import Foundation

/// One stored response with its body, as the layers exchange it. Immutable: a change makes a new entry.
package final class StoredEntry: @unchecked Sendable {
    // @unchecked: `made` is reached only while this object's `SharedLock` is held, and the rest is constant until
    // `deinit`.
    package let metadata: EntryMetadata
    package let body: Data
    let varyKey: VaryKey
    /// True for nearly all entries: the response has no `Vary` and is not a 206. A constant, since each hit reads it.
    let answersEveryRequest: Bool
    /// The memory that the entry takes, in bytes: the body and an estimate of the rest. A constant, since each store
    /// reads it several times.
    package let memoryCost: Int
    /// The object that a caller stored, `userInfo` of any type included. Constant until `deinit`.
    @exclusivity(unchecked) private var given: CachedURLResponse?
    /// Values that are made when they are first needed.
    @exclusivity(unchecked) private var made = Made()

    private struct Made {
        /// The response that lookups return, unless one was given to `init`.
        var cached: CachedURLResponse?
        /// The parsed facts of the response, once a load needed them.
        var reuseFacts: ReuseFacts?
        /// The last matching request's values of the fields that `Vary` names. They are never written to disk.
        var matched: [String?]?
        /// The head that a load delivered last.
        var delivered: Delivered?
    }

    /// A class, since each hit reads it: one reference is cheap to copy.
    private final class Delivered: Sendable {
        let form: DeliveredForm
        let head: DeliveredHead

        init(_ head: DeliveredHead, in form: DeliveredForm) {
            self.form = form
            self.head = head
        }
    }

    /// Everything besides the entry that a delivered head depends on.
    struct DeliveredForm: Equatable {
        var url: String
        var presentation: Presentation
        /// In seconds.
        var age: Int64
        /// This cache's member of `Cache-Status`; nil when none is added.
        var cacheStatus: String?
    }

    package init(metadata: EntryMetadata, body: Data, presented given: CachedURLResponse? = nil) {
        self.metadata = metadata
        self.body = body
        self.given = given
        varyKey = metadata.varyKey
        answersEveryRequest = varyKey == .none && !metadata.isPart
        memoryCost = body.count + Self.headCost(metadata)
    }

    deinit { if let given = takeGiven() { CachedURLResponse.release(given) } }

    /// The same with other metadata: what a caller stored is presented as before, unless the head is another.
    func with(_ metadata: EntryMetadata) -> StoredEntry {
        let isPresented = given != nil && metadata.http?.fields == self.metadata.http?.fields
        return StoredEntry(metadata: metadata, body: body, presented: isPresented ? given : nil)
    }

    /// See `EntryMetadata.offDisk`.
    var offDisk: StoredEntry { metadata.placement == .memoryAndDisk ? with(metadata.offDisk) : self }

    /// A function of its own, so that nothing but its result keeps the object.
    @inline(never)
    private func takeGiven() -> Unmanaged<CachedURLResponse>? {
        defer { given = nil }
        return given.map(Unmanaged.passRetained)
    }

    /// The memory that an entry takes besides its body: 600 bytes for the objects around it, the header fields, the
    /// URL, which its key has, too, and what a server or an app may add in any number: tags, fields that select the
    /// response, and `userInfo`.
    static func headCost(_ metadata: EntryMetadata) -> Int {
        var cost = 600 + 2 * (metadata.url?.utf8.count ?? 0)
        if !metadata.userInfo.isEmpty { cost += PropertyValue.dictionary(metadata.userInfo).estimatedSize }
        for tag in metadata.tags { cost += tag.utf8.count + 32 }
        guard let http = metadata.http else { return cost }
        cost += http.fields.estimatedSize
        for field in http.vary.fields { cost += field.name.utf8.count + 96 }
        return cost
    }

    /// Whether `URLCache`'s own methods may return this entry for a request.
    func answers(_ request: inout FieldDigests) -> Bool {
        if answersEveryRequest { return true }
        // A request with the same values as the last one needs no digests.
        let matched = SharedLock.withLock(of: self) { made.matched }
        if let matched, varyKey.hasValues(matched, in: request.fields) { return true }
        guard metadata.answers(&request) else { return false }
        SharedLock.withLock(of: self) { made.matched = varyKey.values(in: request.fields) }
        return true
    }

    /// The entry as Foundation's object. If the record has no URL, the request's is used.
    func cachedURLResponse(for request: URLRequest) -> CachedURLResponse? {
        if let presentedResponse { return presentedResponse }
        return request.url.map { keep(makeCachedURLResponse(requestedURL: $0)) }
    }

    /// Keeps the response that lookups return, and returns the one that was kept first.
    func keep(_ new: CachedURLResponse) -> CachedURLResponse {
        given
            ?? SharedLock.withLock(of: self) {
                if let cached = made.cached { return cached }
                made.cached = new
                return new
            }
    }

    /// The head as a load delivers it. Loads with the same `Age` (within one second) share it, and with it Foundation's
    /// object.
    func deliveredHead(_ form: DeliveredForm, _ make: () -> DeliveredHead) -> DeliveredHead {
        if let last = SharedLock.withLock(of: self, { made.delivered }), last.form == form { return last.head }
        let head = make()
        SharedLock.withLock(of: self) { made.delivered = Delivered(head, in: form) }
        return head
    }

    /// The facts about age and reuse of the response: parsed once. Nil for a response that is not HTTP.
    var reuseFacts: ReuseFacts? {
        metadata.http.map { http in
            SharedLock.once(
                of: self, get: { made.reuseFacts }, make: { ReuseFacts(http) }, set: { made.reuseFacts = $0 })
        }
    }

    /// Foundation's object for this entry, if it was made before.
    var presentedResponse: CachedURLResponse? { given ?? SharedLock.withLock(of: self) { made.cached } }
}
