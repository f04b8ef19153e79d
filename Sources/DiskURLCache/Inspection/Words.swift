import Foundation

/// The engine's reasons as sentences, with the section that gives the rule.
enum Words {
    /// `12 s`, `5 min`, `3 h`, `7 days`.
    static func span(_ seconds: TimeInterval) -> String {
        let seconds = abs(seconds)
        guard seconds < 1e10 else { return "centuries" }
        if seconds < 120 { return "\(Int(seconds)) s" }
        if seconds < 7_200 { return "\(Int(seconds / 60)) min" }
        if seconds < 172_800 { return "\(Int(seconds / 3_600)) h" }
        return "\(Int(seconds / 86_400)) days"
    }

    static func form(_ presentation: Presentation) -> String {
        switch presentation {
        case .whole: ""
        case .headersOnly: ", header fields only"
        case .notModified: " with a 304, since the request's own condition is met"
        case .range(let bytes, let first, let total): " with a 206: \(bytes.count) bytes from \(first) of \(total)"
        case .rangeNotSatisfiable(let total): " with a 416: the body has \(total) bytes"
        }
    }

    static func words(_ reason: FetchReason) -> (String, String?) {
        switch reason {
        case .notStored: ("nothing that fits is stored.", "RFC 9111 §4")
        case .variantNotStored: ("no stored variant has this request's values of the fields in Vary.", "RFC 9111 §4.1")
        case .stale: ("what is stored is stale, and nothing allows its use.", "RFC 9111 §4.2.4")
        case .mustRevalidate: ("the stored response says no-cache.", "RFC 9111 §5.2.2.4")
        case .requestDirective: ("the request's Cache-Control or Pragma does not take it as it is.", "RFC 9111 §5.2.1")
        case .requestNoStore: ("the request says no-store.", "RFC 9111 §5.2.1.5")
        case .methodNotCached: ("the method is not cached.", "RFC 9111 §4")
        case .reloadPolicy: ("the request's cachePolicy asks for a reload.", nil)
        case .revalidatePolicy: ("the request's cachePolicy wants the origin asked.", nil)
        case .unsupportedRange:
            ("the request asks for several ranges, or in another unit than bytes.", "RFC 9110 §14.2")
        case .rangeNotHeld: ("what is stored does not hold the bytes that are asked for.", "RFC 9111 §3.3")
        case .precondition: ("only the origin can judge the request's own condition.", "RFC 9110 §13.1")
        case .mismatchedAnswer: ("the origin's answer fitted nothing that is stored.", "RFC 9111 §4.3.4")
        }
    }

    static func words(_ allowance: StaleAllowance) -> (String, String?) {
        switch allowance {
        case .maxStale: ("the request says max-stale.", "RFC 9111 §5.2.1.2")
        case .staleWhileRevalidate: ("stale-while-revalidate allows it, and it is refreshed behind.", "RFC 5861 §3")
        case .staleIfError: ("stale-if-error allows it.", "RFC 5861 §4")
        case .offline: ("the cache is offline.", "RFC 9111 §4.2.4")
        case .cachePolicy: ("the request's cachePolicy takes it however old it is.", nil)
        }
    }

    /// The reason, its section, and what would change it.
    static func words(
        _ refusal: StorageRefusal, _ fields: HeaderFields, status: Int
    ) -> (String, String?, advice: String?) {
        let control = fields["Cache-Control"] ?? ""
        return switch refusal {
        case .method:
            ("answers to this method are not stored.", "RFC 9111 §3", nil)
        case .noKey:
            ("the request has no key: no key policy covers it.", nil, "A KeyPolicy can give such requests a key.")
        case .requestNoStore:
            ("the request says no-store.", "RFC 9111 §5.2.1.5", "Leave no-store out of the request's Cache-Control.")
        case .responseNoStore:
            (
                "it says Cache-Control: \(control).", "RFC 9111 §5.2.2.5",
                "Only the origin can change that: no-cache in place of no-store would let it be kept and asked about."
            )
        case .statusNotUnderstood:
            ("it says must-understand, and this cache has no rule for status \(status).", "RFC 9111 §5.2.2.3", nil)
        case .statusNotCacheable:
            StatusCode.isAboutRequestOnly(status)
                ? ("status \(status) is about this request's own condition or range only.", "RFC 9111 §3", nil)
                : (
                    "status \(status) is stored only with a lifetime of its own.", "RFC 9111 §3",
                    "The origin could send max-age with it."
                )
        case .notReusable:
            (
                "without a lifetime, this status could never be used.", "RFC 9111 §3",
                "The origin could send Cache-Control: max-age=… with it."
            )
        case .varyAsterisk:
            (
                "it says Vary: *, which fits no later request.", "RFC 9111 §4.1",
                "The origin could name the request fields that it selects by."
            )
        case .partialContent:
            ("it is a part (206) that what is stored cannot take in.", "RFC 9111 §3.3", nil)
        case .notModified:
            ("a 304 has no body: it only confirms what is stored.", "RFC 9111 §4.3.4", nil)
        case .malformed:
            ("a header field of it could not be written down and read again as it is.", "RFC 9110 §5.5", nil)
        }
    }
}
