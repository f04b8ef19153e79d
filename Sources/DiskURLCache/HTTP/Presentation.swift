import Foundation

/// The form in which a stored response answers a request.
enum Presentation: Sendable, Hashable {
    /// Status, fields and body as stored.
    case whole
    /// Status and fields of a stored GET for a HEAD.
    case headersOnly
    /// 304 without a body: the request's own condition is met by what is stored.
    case notModified
    /// 206: these bytes of the **stored body**, which are the bytes from `first` of a representation of `total` bytes.
    case range(Range<Int>, first: Int, total: Int)
    /// 416 without a body.
    case rangeNotSatisfiable(total: Int)
}

/// Status and fields of a response made from the store.
struct ResponseHead: Sendable, Hashable {
    var status: Int
    var fields: HeaderFields
}

extension Presentation {
    /// What is delivered in front of the body.
    func head(of stored: StoredResponse, age: Int) -> ResponseHead {
        ResponseHead(status: stored.status, fields: stored.fields)
    }
}
