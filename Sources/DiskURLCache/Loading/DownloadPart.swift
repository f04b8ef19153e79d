import Foundation

/// What an app's file has of a body whose download has broken off, and of which response it is the beginning. Only a
/// response with a strong tag is gone on with: the tag alone says that the rest belongs to the same bytes (RFC 9110
/// §13.1.5).
struct DownloadPart: Codable, Sendable {
    private struct Field: Codable, Sendable {
        let name: String
        let value: String
    }

    /// A digest of the request's URL, which may have secrets.
    let resource: String
    /// The same of the URL that the response came from: parts are put together of one resource only (RFC 9111 §3.4).
    /// Without the query, which is another one for each request where URLs are signed.
    private let source: String
    /// The strong tag, as `If-Range` has it.
    let tag: String
    /// Of the response, but those that are never stored.
    private let head: [Field]
    /// Of the whole body, in bytes; nil as long as no answer has said it.
    private(set) var length: Int?
    /// How many bytes the file has for certain.
    var count = 0

    var fields: HeaderFields { HeaderFields(head.map { HeaderFields.Field(name: $0.name, value: $0.value) }) }

    /// The part of a response that begins to arrive; nil if that cannot go on after a break: it is no whole, has no
    /// strong tag, or its bytes are coded, so that a range of them is not a range of the file's.
    init?(of answer: DeliveredHead, resource: String) {
        guard answer.status == 200, !answer.fields.nameCoding,
            let tag = answer.fields.single("ETag").flatMap(EntityTag.init), !tag.isWeak
        else { return nil }
        self.resource = resource
        source = Self.source(of: answer)
        self.tag = tag.text
        head = StorableFields.filtered(answer.fields).fields.map { Field(name: $0.name, value: $0.value) }
        length = ResponseHead(status: answer.status, fields: answer.fields).bodyLength(to: "GET")
    }

    /// Asks for the rest. If the response has changed, the answer is the whole new one.
    func asking(_ request: URLRequest) -> URLRequest {
        var request = request
        request.setValue("bytes=\(count)-", forHTTPHeaderField: "Range")
        request.setValue(tag, forHTTPHeaderField: "If-Range")
        // The rest alone would be stored beside the whole, which is stored when the file has it.
        var options = request.cacheOptions ?? DiskURLCache.Options()
        options.storage = .never
        request.cacheOptions = options
        return request
    }

    /// Whether a 206 brings all that is missing, of the same response; then the length of the whole is known.
    mutating func isCompleted(by answer: DeliveredHead) -> Bool {
        guard answer.status == 206, !answer.fields.nameCoding,
            let range = answer.fields.single("Content-Range").flatMap(ContentRange.init),
            range.range.lowerBound == count, range.range.upperBound == range.total,
            length ?? range.total == range.total, Self.source(of: answer) == source,
            let new = answer.fields.single("ETag").flatMap(EntityTag.init), !new.isWeak, new.text == tag
        else { return false }
        length = range.total
        return true
    }

    /// The head of the whole, once the rest has come with this answer (RFC 9111 §3.4).
    func whole(by answer: Exchange, isShared: Bool) -> StoredResponse {
        let first = StoredResponse(
            method: "GET", status: 200, fields: fields, requestTime: answer.requestTime,
            responseTime: answer.responseTime, vary: VaryKey(response: fields, request: answer.request))
        var whole = StorableFields.updated(first, by: answer, isShared: isShared)
        if let length { whole.fields.set("Content-Length", String(length)) }
        whole.vary = VaryKey(response: whole.fields, request: answer.request)
        return whole
    }

    static func resource(of request: URLRequest) -> String {
        SHA256Digest.digest(of: request.url?.absoluteString ?? "").hex
    }

    private static func source(of answer: DeliveredHead) -> String {
        SHA256Digest.digest(of: String(answer.url?.absoluteString.prefix { $0 != "?" && $0 != "#" } ?? "")).hex
    }

    /// Whether a download of this request may go on: the app itself asks for no part, and sets no conditions.
    static func mayContinue(_ request: URLRequest) -> Bool {
        guard request.httpMethod ?? "GET" == "GET", request.httpBody == nil, request.httpBodyStream == nil else {
            return false
        }
        return RequestFacts.partialFieldNames.allSatisfy { request.value(forHTTPHeaderField: $0) == nil }
    }
}
