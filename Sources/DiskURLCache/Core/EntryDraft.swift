import Foundation

/// A response that is to be stored, by a load, a call of the app, or the system's loader.
struct EntryDraft {
    enum Storer {
        case load
        /// The app itself: the response is written to disk however soon it expires.
        case app
        /// The system's loader: so is this one, but its threads do not wait for the disk.
        case systemLoader
    }

    var response: EntryMetadata.Response
    /// The URL for the record, without user name and password.
    var url: String?
    var body: Body
    /// The file in which the body was gathered, if it was; it can become the record.
    var file: IncomingBody?
    var edited: EditedResponse
    let storer: Storer
    /// Why the response may not be stored, but is held in memory for a while (`TieredStore.hold`); nil if it is stored.
    var heldBecause: DiskURLCache.Reason?

    /// An answer that a load received.
    init(_ response: StoredResponse, _ body: Body, _ edited: EditedResponse, for hop: ResolvedRequest) {
        self.response = .http(response)
        url = hop.request.urlWithoutCredentials
        self.body = body
        self.edited = edited
        storer = .load
    }

    /// A response that the app made or received.
    init(
        _ cached: CachedURLResponse, _ response: EntryMetadata.Response, _ edited: EditedResponse, by storer: Storer
    ) {
        self.response = response
        url = cached.response.url?.withoutCredentials
        body = .memory(cached.data)
        self.edited = edited
        self.storer = storer
    }

    /// The response with a `Content-Length` that is true of the body.
    var correctedResponse: EntryMetadata.Response {
        http.map { .http(ContentLength.corrected($0, to: body.count)) } ?? response
    }

    /// Nil for a response that is not HTTP.
    var http: StoredResponse? { if case .http(let response) = response { response } else { nil } }
}

/// Changes to a response before it is stored, mostly by a delegate or `Configuration.willCacheResponse`.
struct EditedResponse {
    /// The response with its changed head; nil if that is as the origin sent it.
    var response: StoredResponse?
    /// The changed body; nil if the gathered one is stored.
    var data: Data?
    var isMemoryOnly = false
    var userInfo: [String: PropertyValue] = [:]
    /// The object to keep in memory, if `userInfo` has values that cannot be written to disk.
    var presented: CachedURLResponse?

    /// Changes the head of a response. If the body was changed alone, the digests of the old one go.
    func change(_ response: inout StoredResponse) {
        if let changed = self.response {
            response = changed
        } else if data != nil {
            for name in BodyDigests.fieldNames { response.fields.remove(name) }
        }
    }
}
