import Foundation

/// The HTTP facts of one stored response: all that RFC 9111 needs to decide about its reuse.
struct StoredResponse: Sendable, Hashable {
    /// The method of the request that was answered, in upper case.
    var method: String
    var status: Int
    var fields: HeaderFields
    /// When the request was sent that this response answered or last validated (RFC 9111 §4.2.3 `request_time`).
    var requestTime: Date
    /// When the response arrived (RFC 9111 §4.2.3 `response_time`).
    var responseTime: Date
    /// What the request looked like in the fields that `Vary` names.
    var vary: VaryKey
}

/// The facts of a request that caching looks at.
struct RequestFacts: Sendable, Hashable {
    /// In upper case.
    var method: String
    var fields: HeaderFields

    /// The request without the fields that ask for less than the whole response: how a refresh in the background, or a
    /// repetition after an answer that fitted nothing, is to be sent.
    var unconditional: RequestFacts {
        var result = self
        for name in Self.partialFieldNames { result.fields.remove(name) }
        return result
    }

    static let partialFieldNames = ["If-None-Match", "If-Modified-Since", "If-Range", "Range"]
}
