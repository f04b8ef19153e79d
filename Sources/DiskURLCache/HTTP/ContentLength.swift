/// `Content-Length` beside the body that arrived (RFC 9110 §8.6, RFC 9112 §6.3). Asked before each store, whatever way
/// the response came: a load, a transport of the app, a task that Foundation loads, an app that stores a response.
///
/// A coded body arrives decoded, and its `Content-Length` counts the coded bytes: nothing can be compared then.
enum ContentLength {
    /// The length that the fields state. Nil without one, and for one that means nothing: it is no number, there are
    /// two different ones, or `Transfer-Encoding` frames the body instead.
    static func stated(in fields: HeaderFields) -> Int? {
        guard let value = fields["Content-Length"], fields["Transfer-Encoding"] == nil else { return nil }
        let lengths = FieldSyntax.members(of: value).map { FieldSyntax.number($0, limit: Int.max) }
        guard let first = lengths.first, lengths.allSatisfy({ $0 == first }) else { return nil }
        return first
    }

    /// Why a body of so many bytes is not the whole body of the response (RFC 9111 §3.3); nil when it may be.
    static func objection(to length: Int, of response: StoredResponse) -> DiskURLCache.Reason? {
        switch response.status {
        case _ where response.method == "HEAD": return nil
        case 204, 205: return length > 0 ? .wrongLength(length, stated: 0) : nil
        case 206: return PartialContent.isConsistent(response, length: length) ? nil : .partialContent
        default:
            guard !isCoded(response.fields), let stated = stated(in: response.fields), stated > length else {
                return nil
            }
            return .wrongLength(length, stated: stated)
        }
    }

    /// The response with a `Content-Length` that is true of a body of so many bytes. Without the field it gets none.
    ///
    /// Whoever copies the fields of a stored response into a message of its own would otherwise frame it wrongly.
    static func corrected(_ response: StoredResponse, to length: Int) -> StoredResponse {
        guard let value = response.fields["Content-Length"], response.method != "HEAD", response.status != 206 else {
            return response
        }
        var response = response
        if response.status == 204 || response.status == 205 {
            // RFC 9110 §8.6, §15.3.6: they have no body.
            response.fields.remove("Content-Length")
        } else if !isCoded(response.fields) {
            let text = String(length)
            if value != text { response.fields.set("Content-Length", text) }
        } else if let stated = stated(in: response.fields) {
            // "5, 5" is 5.
            response.fields.set("Content-Length", String(stated))
        } else {
            response.fields.remove("Content-Length")
        }
        return response
    }

    private static func isCoded(_ fields: HeaderFields) -> Bool {
        guard let coding = fields["Content-Encoding"] else { return false }
        return FieldSyntax.members(of: coding).contains { !String($0).equalsIgnoringASCIICase("identity") }
    }
}
