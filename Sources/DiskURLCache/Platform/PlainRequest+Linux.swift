#if canImport(FoundationNetworking)
    @_spi(Reflection) import Swift
    import Foundation
    import FoundationNetworking

    /// Tells whether a request is a plain `GET` from where Foundation keeps it: the accessors take a third of a memory hit,
    /// most of it for counting references to what is then thrown away.
    ///
    /// What has no name outside of Foundation, such as having no body, is told by the bytes of a request that is plain. Other
    /// bytes only mean that the accessors have to be asked.
    struct PlainRequest: @unchecked Sendable {
        // @unchecked: places and bytes, all constant.
        private let handleOffset: Int
        private let object: StoredProperty
        private let url: StoredProperty
        private let fields: StoredProperty
        /// Of a request without a body, whose method is `GET` and that carries no treatment.
        private let plain: (body: StoredProperty.Bytes, method: StoredProperty.Bytes, document: StoredProperty.Bytes)

        /// Nil where this Foundation's requests are of another shape.
        static let places = PlainRequest()

        private init?() {
            var handle: (offset: Int, type: AnyClass)?
            _ = _forEachField(of: URLRequest.self) { name, offset, type, _ in
                if String(cString: name) == "_handle", let type = type as? AnyClass { handle = (offset, type) }
                return true
            }
            guard let handle, let object = StoredProperty("_pointer", of: handle.type),
                let url = StoredProperty("url", of: NSMutableURLRequest.self),
                let fields = StoredProperty("allHTTPHeaderFields", of: NSMutableURLRequest.self),
                let body = StoredProperty("_body", of: NSMutableURLRequest.self),
                let method = StoredProperty("_httpMethod", of: NSMutableURLRequest.self),
                let document = StoredProperty("mainDocumentURL", of: NSMutableURLRequest.self),
                let sampleURL = URL(string: "http://localhost/")
            else { return nil }
            handleOffset = handle.offset
            self.object = object
            self.url = url
            self.fields = fields
            let sample = URLRequest(url: sampleURL)
            let bytes: (StoredProperty.Bytes, StoredProperty.Bytes, StoredProperty.Bytes)? = withExtendedLifetime(
                sample
            ) {
                guard let place = Self.object(of: sample, handle.offset, object), let body = body.bytes(at: place),
                    let method = method.bytes(at: place), let document = document.bytes(at: place)
                else { return nil }
                return (body, method, document)
            }
            guard let bytes else { return nil }
            plain = bytes
        }

        /// The URL's text; nil where the request is not plain, or may not be.
        @inline(__always)
        func url(of request: URLRequest) -> String? {
            withExtendedLifetime(request) {
                guard let object = Self.object(of: request, handleOffset, object), plain.body.are(at: object),
                    plain.method.are(at: object), plain.document.are(at: object)
                else { return nil }
                guard let fields = fields.value(at: object, as: [String: String]?.self) else { return nil }
                if let fields, !fields.isEmpty, HeaderFields(dictionary: fields)["Authorization"] != nil { return nil }
                return url.value(at: object, as: URL?.self)??.absoluteString
            }
        }

        /// Where Foundation's own class keeps what the request is made of. An app's subclass may have accessors of its own.
        @inline(__always)
        private static func object(
            of request: URLRequest, _ handleOffset: Int, _ object: StoredProperty
        ) -> UnsafeRawPointer? {
            let handle = withUnsafeBytes(of: request) {
                $0.load(fromByteOffset: handleOffset, as: UnsafeRawPointer.self)
            }
            let place = object.place(at: handle).load(as: UnsafeRawPointer.self)
            return place.load(as: UnsafeRawPointer.self) == mutableRequestClass ? place : nil
        }

        // Constant: the address of a class.
        nonisolated(unsafe) private static let mutableRequestClass = unsafeBitCast(
            NSMutableURLRequest.self as AnyClass, to: UnsafeRawPointer.self)
    }
#endif
