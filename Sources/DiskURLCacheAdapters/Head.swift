import DiskURLCache
import Foundation

extension DiskURLCache {
    /// The head of an answer: received from a transport of the app, and the beginning of a
    /// `DiskURLCache.ResponseStream`.
    public struct Head: Sendable {
        /// The status code.
        public var status: Int
        /// The header fields in their order. A name may occur several times.
        public var fields: [(name: String, value: String)]

        public init(status: Int, fields: [(name: String, value: String)] = []) {
            self.status = status
            self.fields = fields
        }

        init(_ head: ResponseHead) {
            self.init(status: head.status, fields: head.fields.fields.map { ($0.name, $0.value) })
        }
    }
}

extension DiskURLCache.ResponseStream {
    /// Status and header fields. From the network, they are as the transport delivered them.
    public var head: DiskURLCache.Head {
        DiskURLCache.Head(ResponseHead(status: delivered.status, fields: delivered.fields))
    }

    /// The URL of the answer, after redirects.
    public var url: URL? { delivered.url }
}
