import Foundation

/// The part of a key that stands for the request's content: the digest of the body, and the fields that say what its
/// bytes mean. Two requests with equal bytes and different types ask for different things (RFC 10008 §2.7).
enum KeyedContent {
    /// `Content-Type`, `Content-Encoding` and `Content-Language`: the representation metadata of RFC 9110 §8 by which
    /// a server reads a body.
    private static let fieldNames = ["content-type", "content-encoding", "content-language"]

    static func text(of request: DiskURLCache.Request, form: DiskURLCache.KeyPolicy.BodyForm) -> String {
        let body = request.body ?? Data()
        // The name keeps the canonical form of one body apart from the bytes of another.
        var text =
            canonicalJSON(body, of: request, form: form).map { "\njson:\(digest(of: $0).hex)" }
            ?? "\nbody:\(digest(of: body).hex)"
        for name in fieldNames {
            guard let value = request.headerFields[name] else { continue }
            let normalized =
                name == "content-type" ? mediaType(value) : VaryKey.normalized(value.lowercased(), of: name)
            // The length makes sure that a value cannot look like the next part of the key.
            text += "\n\(name):\(normalized.utf8.count):\(normalized)"
        }
        return text
    }

    private static func digest(of bytes: Data) -> KeyDigest {
        bytes.withUnsafeBytes { SHA256Digest.digest(of: $0) }
    }

    /// The canonical form of a body that is JSON; nil for a body that counts by its bytes.
    private static func canonicalJSON(
        _ body: Data, of request: DiskURLCache.Request, form: DiskURLCache.KeyPolicy.BodyForm
    ) -> Data? {
        let mayBeJSON =
            switch form {
            case .bytes: false
            case .json: true
            case .byMediaType: isJSON(request.headerFields["Content-Type"])
            }
        guard mayBeJSON, !CacheControl(request.headerFields["Cache-Control"]).contains("no-transform") else {
            return nil
        }
        return CanonicalJSON.text(of: body).map { Data($0) }
    }

    /// Whether a media type is JSON by its name or by its suffix (RFC 6839 §3.1). A body in another coding or charset
    /// is no JSON text, and counts by its bytes.
    private static func isJSON(_ contentType: String?) -> Bool {
        guard let contentType else { return false }
        let essence = mediaType(contentType).prefix { $0 != ";" }
        return essence == "application/json" || essence.hasSuffix("+json")
    }

    /// The type in lower case (RFC 9110 §8.3.1), its parameters as they are written.
    private static func mediaType(_ value: String) -> String {
        let end = value.firstIndex(of: ";") ?? value.endIndex
        return FieldSyntax.trimming(value[..<end]).lowercased() + FieldSyntax.trimming(value[end...])
    }
}
