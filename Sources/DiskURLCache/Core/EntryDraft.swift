import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A response on its way into the store, whoever brings it: a load, a call of the app, the system's loader, or a POST
/// whose answer serves a GET.
struct EntryDraft {
    var response: EntryMetadata.Response
    /// For the record, without user name and password.
    var url: String?
    var body: ArrivedBody
    var edited = EditedResponse()
    /// The app itself stores the response: it is written however soon it expires.
    var isByApp = false

    /// An answer that a load fetched for a request.
    init(_ response: StoredResponse, _ body: ArrivedBody, _ edited: EditedResponse, for hop: ResolvedRequest) {
        self.response = .http(response)
        url = hop.request.urlWithoutCredentials
        self.body = body
        self.edited = edited
    }

    /// A response that the app made or got.
    init(_ cached: CachedURLResponse, _ response: EntryMetadata.Response, _ edited: EditedResponse) {
        self.response = response
        url = cached.response.url?.withoutCredentials
        body = .memory(cached.data)
        self.edited = edited
        isByApp = true
    }

    /// The response with a `Content-Length` that is true of the body.
    var correctedResponse: EntryMetadata.Response {
        http.map { .http(ContentLength.corrected($0, to: body.count)) } ?? response
    }

    /// Nil for a response that is not HTTP.
    var http: StoredResponse? { if case .http(let response) = response { response } else { nil } }
}

/// The changes of a response before it is stored, by a delegate or `Configuration.willCacheResponse` mostly.
struct EditedResponse {
    var fields: HeaderFields?
    var status: Int?
    /// Used instead of the gathered body.
    var data: Data?
    var isMemoryOnly = false
    var userInfo: [String: PropertyValue] = [:]
    /// Set if `userInfo` has values that only memory can keep.
    var presented: CachedURLResponse?
}
