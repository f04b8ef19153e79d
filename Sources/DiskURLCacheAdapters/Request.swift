import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache.Request {
    /// A request for `DiskURLCache.load(_:through:variant:redirect:)`. Nil when the text is no URL.
    /// - Parameters:
    ///   - streamsBody: the body is no value, and the sender of the request has it.
    ///   - timeoutInterval: seconds in which there must be a head.
    ///   - options: how the response is kept; wins over all rules. Nil when only rules and configuration count.
    public init?(
        method: String = "GET", url: String, fields: [(name: String, value: String)] = [], body: Data? = nil,
        streamsBody: Bool = false, timeoutInterval: TimeInterval = 60, options: DiskURLCache.Options? = nil
    ) {
        self.init(
            method: method, text: url, headerFields: HeaderFields(fields), body: body, hasBodyStream: streamsBody,
            timeout: timeoutInterval, options: options)
    }

    /// The header fields in their order. A name may occur several times.
    public var fields: [(name: String, value: String)] {
        get { headerFields.fields.map { ($0.name, $0.value) } }
        set { headerFields = HeaderFields(newValue) }
    }

    /// The value of a header field, whatever the case of its name: the values of a repeated field joined by ", ". Nil
    /// without one.
    public subscript(field: String) -> String? { headerFields[field] }

    /// The body is a stream, of which the cache knows nothing: such a request has no key.
    public var streamsBody: Bool { hasBodyStream }

    /// Seconds in which there must be a head.
    public var timeoutInterval: TimeInterval { timeout }
}

extension DiskURLCache {
    /// How this cache would handle a request of a transport now, and why: as
    /// `explanation(for:variant:response:sentAt:)`.
    public func explanation(
        for request: Request, variant: String? = nil, response: HTTPURLResponse? = nil, sentAt: Date? = nil
    ) -> Explanation {
        explanation(of: request, variant: variant, response: response, sentAt: sentAt)
    }
}
