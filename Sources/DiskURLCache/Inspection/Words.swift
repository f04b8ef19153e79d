import Foundation

/// Numbers and forms in words. The words for the reasons are in `HTTP/Reasons.swift`.
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

    /// Why the response with these fields is not stored, where more can be said than the reason's own words, and what would
    /// change that.
    static func words(
        _ refusal: CacheNotStoredReason, _ fields: HeaderFields, status: Int
    ) -> (text: String, advice: String?) {
        switch refusal {
        case .authorized:
            (
                refusal.description,
                "The origin could say public, must-revalidate or s-maxage, if every user may have it."
            )
        case .cookie:
            (
                refusal.description,
                "The origin could say public or Vary: Cookie; the app could key the field, or leave Cookie out of the request."
            )
        case .requestNoStore: (refusal.description, "Leave no-store out of the request's Cache-Control.")
        case .responseNoStore:
            (
                "it says Cache-Control: \(fields["Cache-Control"] ?? "")",
                "Only the origin can change that: no-cache in place of no-store would let it be kept and asked about."
            )
        case .statusNotUnderstood:
            ("it says must-understand, and this cache has no rule for status \(status)", nil)
        case .statusNotCacheable where StatusCode.isAboutRequestOnly(status):
            ("status \(status) is about this request's own condition or range only", nil)
        case .statusNotCacheable:
            ("status \(status) is stored only with a lifetime of its own", "The origin could send max-age with it.")
        case .notReusable:
            (refusal.description, "The origin could send Cache-Control: max-age=… with it.")
        case .varyAsterisk:
            (refusal.description, "The origin could name the request fields that it selects by.")
        default: (refusal.description, nil)
        }
    }
}
