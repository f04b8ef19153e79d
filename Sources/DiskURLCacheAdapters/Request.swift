import DiskURLCache
import Foundation

extension DiskURLCache.Request {
    /// A request for `DiskURLCache.load(_:through:variant:progress:redirect:)`. Nil if `url` is not a URL.
    /// - Parameters:
    ///   - method: the method as it is sent: `get` is not `GET` (RFC 9110 §9.1), and is not cached.
    ///   - url: the absolute URL.
    ///   - fields: the header fields, in the order in which they are sent.
    ///   - body: the whole body; nil if there is none, or `streamsBody`.
    ///   - streamsBody: whether there is a body that is not given here, since the transport streams it.
    ///   - timeoutInterval: the seconds within which the head of the answer must arrive.
    ///   - options: how the response is kept, with precedence over all rules; nil if only rules and the configuration
    ///     decide.
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

    /// The value of a header field; nil if there is none. Upper and lower case of the name make no difference. The
    /// values of a repeated field are joined by ", ".
    public subscript(field: String) -> String? { headerFields[field] }

    /// Whether the transport streams the body. The cache does not know its bytes, so the request has no key.
    public var streamsBody: Bool { hasBodyStream }

    /// The seconds within which the head of the answer must arrive.
    public var timeoutInterval: TimeInterval { timeout }
}
