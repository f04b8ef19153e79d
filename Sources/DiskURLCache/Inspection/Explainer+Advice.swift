import Foundation

// Advice that would change a decision, and the text of numbers and forms.

extension Explainer {
    /// Advice that makes a stored response usable for longer, or cheaper.
    mutating func sayAdvice(_ response: StoredResponse, _ options: CachingOptions) {
        let reuse = ReuseFacts(response).governed(by: options)
        let said = reuse.directives
        let freshness = Freshness(of: reuse, options: options, now: now)
        if said.noCache {
            say(
                .advice, "The response says no-cache: each use needs a validation. With max-age instead, none does.",
                "RFC 9111 §5.2.2.4")
        } else {
            switch freshness.source {
            case .none:
                say(
                    .advice,
                    "The origin could send Cache-Control: max-age=…; the app can set DiskURLCache.Options(lifetime: .whenMissing(seconds)).",
                    "RFC 9111 §5.2.2.1")
            case .heuristic:
                say(
                    .advice, "The lifetime is a guess: a max-age from the origin would make it a promise.",
                    "RFC 9111 §4.2.2")
            case .sharedMaxAge, .maxAge, .expires:
                guard freshness.lifetime == 0 else { break }
                say(
                    .advice,
                    "The origin gives it no lifetime (max-age=0, or an Expires that is past): a max-age above 0 would save the request.",
                    "RFC 9111 §5.2.2.1")
            case .option: break
            }
        }
        let isUnstated = said.staleWhileRevalidate == nil && options.defaultStaleWhileRevalidate == nil
        if !said.noCache, !said.mustRevalidate(inSharedCache: options.isShared), isUnstated, freshness.lifetime > 0 {
            say(
                .advice, "With stale-while-revalidate=… it could be shown at once while it is refreshed.", "RFC 5861 §3"
            )
        }
        if response.entityTag == nil, response.lastModified == nil, (200...299).contains(response.status) {
            say(.advice, "With an ETag or a Last-Modified, a 304 without a body would confirm it.", "RFC 9110 §8.8")
        }
        let selecting = Set(response.vary.fields.map(\.name)).intersection(["cookie", "user-agent", "referer"])
        if !selecting.isEmpty {
            let names = selecting.sorted().joined(separator: ", ")
            say(.advice, "Vary names \(names): nearly each request is another variant.", "RFC 9110 §12.5.5")
        }
    }

    /// `12 s`, `5 min`, `3 h`, `7 days`.
    func span(_ seconds: TimeInterval) -> String {
        let seconds = abs(seconds)
        guard seconds < 1e10 else { return "centuries" }
        if seconds < 120 { return "\(Int(seconds)) s" }
        if seconds < 7_200 { return "\(Int(seconds / 60)) min" }
        return seconds < 172_800 ? "\(Int(seconds / 3_600)) h" : "\(Int(seconds / 86_400)) days"
    }

    func form(_ presentation: Presentation) -> String {
        switch presentation {
        case .whole: ""
        case .headersOnly: ", header fields only"
        case .notModified: " with a 304, since the request's own condition is met"
        case .range(let bytes, let first, let total): " with a 206: \(bytes.count) bytes from \(first) of \(total)"
        case .rangeNotSatisfiable(let total): " with a 416: the body has \(total) bytes"
        }
    }
}

extension CacheDecision {
    var phrase: String {
        switch self {
        case .useStored(let reuse): reuse.basis == .fresh ? "answered from the store" : "answered from the store, stale"
        case .revalidate: "the origin is asked whether it is still valid"
        case .fetch: "loaded from the network again"
        case .unsatisfiable: "an error"
        }
    }
}
