/// The meaning of a status code for caching.
enum StatusCode {
    /// RFC 9110 §15.1. The list there has 206, too; here `PartialContent` decides about it.
    static func isHeuristicallyCacheable(_ status: Int) -> Bool {
        switch status {
        case 200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501: true
        default: false
        }
    }

    /// Codes whose meaning for caching this cache knows, for `must-understand` (RFC 9111 §5.2.2.3): those of RFC 9110
    /// but for 206 and 304, which are no whole responses.
    static func isUnderstood(_ status: Int) -> Bool {
        switch status {
        case 200...205, 300...303, 305, 307, 308, 400...417, 421, 422, 426, 500...505: true
        default: false
        }
    }

    /// Answers to the request's own credentials, condition, range or expectation: they fit no request with others, and
    /// the cache's key does not hold those that Foundation or the origin adds. Servers do send them with a lifetime
    /// (nginx by `expires`). A stored 401 would be the answer after the login, too.
    static func isAboutRequestOnly(_ status: Int) -> Bool { [401, 407, 412, 416, 417].contains(status) }

    /// Answers to how the request was sent: how often, how large, over which connection. RFC 6585 forbids storing 428,
    /// 429, 431 and 511, whatever lifetime they have; 421 (RFC 9110 §15.5.20) and 425 (RFC 8470) ask for another try.
    static func isAboutSending(_ status: Int) -> Bool { [421, 425, 428, 429, 431, 511].contains(status) }

    /// The errors that a stale response may replace. RFC 5861 §4 lists 500, 502, 503 and 504 of those that were
    /// registered then; CDNs answer 520 to 530 when the origin is down.
    static func isServerTrouble(_ status: Int) -> Bool { (500...599).contains(status) }

    /// Answers that give the current state of the resource: the stored responses of its URL are out of date.
    static func isReplacement(_ status: Int) -> Bool { [200, 203, 204, 301, 308, 404, 410].contains(status) }
}
