import Foundation

/// The HTTP facts of one stored response: all that RFC 9111 needs to decide about its reuse.
package struct StoredResponse: Sendable, Equatable {
    /// By reference: a load copies its responses some thirty times, and changes them seldom.
    private var contents: Contents

    private final class Contents: Sendable {
        let values: Values

        init(_ values: Values) { self.values = values }
    }

    private struct Values: Sendable, Equatable {
        var method: String
        var status: Int
        var fields: HeaderFields
        var requestTime: Date
        var responseTime: Date
        var vary: VaryKey
        var staleSince: Date?
    }

    private var values: Values {
        get { contents.values }
        set { contents = Contents(newValue) }
    }

    /// The method of the request that was answered, as it was sent.
    package var method: String {
        get { contents.values.method }
        set { values.method = newValue }
    }
    package var status: Int {
        get { contents.values.status }
        set { values.status = newValue }
    }
    package var fields: HeaderFields {
        get { contents.values.fields }
        set { values.fields = newValue }
    }
    /// When the request was sent that brought or last validated this response (RFC 9111 §4.2.3 `request_time`).
    var requestTime: Date {
        get { contents.values.requestTime }
        set { values.requestTime = newValue }
    }
    /// When the response arrived, or the 304 that last validated it (RFC 9111 §4.2.3 `response_time`).
    package var responseTime: Date {
        get { contents.values.responseTime }
        set { values.responseTime = newValue }
    }
    /// The values that the request had in the fields that `Vary` names.
    package var vary: VaryKey {
        get { contents.values.vary }
        set { values.vary = newValue }
    }
    /// When the app, or an answer, said that the response is stale from now on; nil if nobody did. An answer to a later
    /// request ends that.
    package var staleSince: Date? {
        get { contents.values.staleSince }
        set { values.staleSince = newValue }
    }

    init(
        method: String, status: Int, fields: HeaderFields, requestTime: Date, responseTime: Date, vary: VaryKey,
        staleSince: Date? = nil
    ) {
        contents = Contents(
            Values(
                method: method, status: status, fields: fields, requestTime: requestTime, responseTime: responseTime,
                vary: vary, staleSince: staleSince))
    }

    package static func == (left: StoredResponse, right: StoredResponse) -> Bool {
        left.contents === right.contents || left.contents.values == right.contents.values
    }
}

extension StoredResponse {
    /// Whether the response was selected by the same request fields, and its method lets it answer this request.
    package func answers(_ request: RequestFacts) -> Bool {
        answers(method: request.method) && vary.matches(request.fields)
    }

    /// The same, for one of several responses of a key.
    func answers(_ request: RequestFacts, _ digests: inout FieldDigests) -> Bool {
        answers(method: request.method) && vary.matches(&digests)
    }

    /// RFC 9111 §4: the answer to a GET may answer a HEAD. The answer to a HEAD has no body, so it answers no GET.
    func answers(method asked: String) -> Bool {
        method == asked || (method == "GET" && asked == "HEAD")
    }
}

/// The facts of a request that decide about caching. A class: each decision has them, and one reference is cheap to
/// copy.
package final class RequestFacts: Sendable {
    /// As it is sent: `get` is not `GET`.
    package let method: String
    package let fields: HeaderFields
    /// As it is asked for, with its credentials; nil if they do not count.
    private let url: String?
    /// The directives in the fields about reuse, parsed once.
    let directives: RequestDirectives
    /// Of the cache; nil if the digests of credentials have none.
    let salt: CredentialSalt?
    /// Whether there is one of the fields that `wish` is asked for.
    let hasWishes: Bool

    init(method: String, url: String? = nil, fields: HeaderFields, salt: CredentialSalt? = nil) {
        self.method = method
        self.url = url
        self.fields = fields
        self.salt = salt
        hasWishes = Self.hasWishes(fields)
        directives = hasWishes ? RequestDirectives(fields) : RequestDirectives()
    }

    /// The value of one of the fields by which a client says which stored responses, or which part of one, it wants.
    /// Nearly all requests have none of them, and each load asks for them a dozen times.
    func wish(_ name: String) -> String? {
        assert(Self.wishes.contains(where: name.equalsIgnoringASCIICase))
        return hasWishes ? fields[name] : nil
    }

    private static func hasWishes(_ fields: HeaderFields) -> Bool {
        var isFound = false
        fields.forEachField { name, _ in
            guard !isFound, wishLengths.mayContain(name) else { return }
            isFound = wishes.contains(where: name.equalsIgnoringASCIICase)
        }
        return isFound
    }

    static let wishes = [
        "cache-control", "pragma", "range", "if-range", "if-match", "if-none-match", "if-modified-since",
        "if-unmodified-since",
    ]

    private static let wishLengths = NameLengths(wishes)

    /// Whether the method asks for a representation, under the conditions and in the ranges that the request names:
    /// `GET`, and `QUERY`, which selects what a `GET` of its equivalent resource would (RFC 10008 §2.2, §2.6, §2.8).
    package var isRetrieval: Bool { method == "GET" || method == "QUERY" }

    /// The request without the fields that ask for less than the whole response: the form in which a background refresh
    /// is sent.
    var unconditional: RequestFacts {
        var fields = fields
        for name in Self.partialFieldNames { fields.remove(name) }
        return RequestFacts(method: method, url: url, fields: fields, salt: salt)
    }

    /// Whether the request is sent with `Authorization`. Foundation makes that field of the user name and password of a
    /// URL.
    var isAuthorized: Bool { fields["Authorization"] != nil || url.map(URL.hasCredentials) == true }

    static let partialFieldNames = ["If-None-Match", "If-Modified-Since", "If-Range", "Range"]
}
