/// Compares `Content-Length` with the body that arrived (RFC 9110 §8.6, RFC 9112 §6.3). Used before every store: by a
/// load, a transport of the app, a task that Foundation loads, or an app that stores a response.
///
/// An encoded body arrives decoded, while its `Content-Length` counts the encoded bytes, so those two cannot be
/// compared.
enum ContentLength {
    /// The length that the fields state. Nil if there is none, or if it means nothing: it is not a number, there are
    /// two different ones, or `Transfer-Encoding` is used instead.
    static func stated(in fields: HeaderFields) -> Int? {
        guard let value = fields["Content-Length"], fields["Transfer-Encoding"] == nil else { return nil }
        let lengths = FieldSyntax.members(of: value).map { FieldSyntax.number($0, limit: Int.max) }
        guard let first = lengths.first, lengths.allSatisfy({ $0 == first }) else { return nil }
        return first
    }

    /// Why a body of this length cannot be the complete body of the response (RFC 9111 §3.3); nil if it can.
    static func objection(to length: Int, of response: StoredResponse) -> DiskURLCache.Reason? {
        switch response.status {
        case _ where response.method == "HEAD": return nil
        case 204, 205: return length > 0 ? .wrongLength(length, stated: 0) : nil
        case 206: return PartialContent.isConsistent(response, length: length) ? nil : .partialContent
        default:
            guard !response.fields.nameCoding, let stated = stated(in: response.fields), stated > length else {
                return nil
            }
            return .wrongLength(length, stated: stated)
        }
    }

    /// The response with the right `Content-Length` for a body of this length, if it has the field at all.
    ///
    /// A program that copies the fields of a stored response into its own message would otherwise send a wrong length.
    static func corrected(_ response: StoredResponse, to length: Int) -> StoredResponse {
        guard let value = response.fields["Content-Length"], response.method != "HEAD", response.status != 206 else {
            return response
        }
        var response = response
        if response.status == 204 || response.status == 205 {
            // RFC 9110 §8.6, §15.3.6: responses with these statuses have no body.
            response.fields.remove("Content-Length")
        } else if !response.fields.nameCoding {
            let text = String(length)
            if value != text { response.fields.set("Content-Length", text) }
        } else if let stated = stated(in: response.fields) {
            // "5, 5" counts as 5.
            response.fields.set("Content-Length", String(stated))
        } else {
            response.fields.remove("Content-Length")
        }
        return response
    }
}
