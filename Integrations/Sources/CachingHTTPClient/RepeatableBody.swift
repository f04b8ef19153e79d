import AsyncHTTPClient

extension HTTPClientRequest.Body {
    /// Whether the client alone would send this body again after a redirect: it does so with bytes, and not with what streams.
    ///
    /// The client knows and does not say. So the name of its case is read, and a body whose case cannot be read counts as one that
    /// streams: the redirect is the answer then.
    var canBeSentAgain: Bool {
        guard let mode = Mirror(reflecting: self).descendant("mode"), let form = Mirror(reflecting: mode).children.first
        else { return false }
        switch form.label {
        case "byteBuffer": return true
        case "sequence": return Mirror(reflecting: form.value).descendant("canBeConsumedMultipleTimes") as? Bool == true
        default: return false
        }
    }
}
