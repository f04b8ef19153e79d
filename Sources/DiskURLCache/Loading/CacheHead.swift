/// The head of an answer, as a ``CacheTransport`` brings it and as a ``CacheStream`` begins with it.
public struct CacheHead: Sendable {
    /// The status code.
    public var status: Int
    /// The header fields in their order. A name may occur several times.
    public var fields: [(name: String, value: String)]

    public init(status: Int, fields: [(name: String, value: String)] = []) {
        self.status = status
        self.fields = fields
    }
}
