import DiskURLCache
import Foundation

extension DiskURLCache {
    /// What a cache would do with a request, and why, clause by clause: its `description` says it in paragraphs with
    /// headings (the key, what the request asks for, the stored responses, freshness with its numbers, validators, the
    /// decision, whether the answer is stored, and advice). Sentences end with the source of the rule, such as
    /// `[RFC 9111 §4.2.1]`. Made by
    /// `DiskURLCache.explanation(for:variant:response:sentAt:)` and
    /// `DiskURLCache.Inspector.explanation(for:variant:response:sentAt:now:)`.
    public struct Explanation: Sendable, Hashable, PrintedByDescription {
        /// The outcome of a load now: `Report.Outcome.revalidated(_:)` if it would send a conditional request,
        /// assuming that the origin confirms the stored response. Otherwise the network is assumed to answer.
        let outcome: Report.Outcome
        /// Why the given response would not be stored; nil when it would be, and when none was given.
        let notStoredReason: Reason?
        package let printedText: String
    }

    /// Explains what this cache would do with a request now, by its rules and options.
    ///
    /// Reads the heads of stored responses on the caller's thread. Sends no request and stores nothing.
    /// - Parameters:
    ///   - request: the request to explain.
    ///   - variant: the variant of `load(_:through:variant:progress:redirect:)`; nil for `URLSession` and all clients
    ///     that share its entries.
    ///   - response: the origin's answer, to learn whether it would be stored; nil to explain the request only.
    ///     It counts as having arrived now.
    ///   - sentAt: when the request for it was sent; nil: now.
    public func explanation(
        for request: URLRequest, variant: String? = nil, response: HTTPURLResponse? = nil, sentAt: Date? = nil
    ) -> Explanation {
        explanation(of: Request(request), variant: variant, response: response, sentAt: sentAt)
    }

    /// The same for a request of a transport (product `DiskURLCacheAdapters`).
    public func explanation(
        for request: Request, variant: String? = nil, response: HTTPURLResponse? = nil, sentAt: Date? = nil
    ) -> Explanation {
        explanation(of: request, variant: variant, response: response, sentAt: sentAt)
    }

    /// - Parameter stored: the responses that are stored for a key, instead of those of this cache.
    func explanation(
        of request: Request, variant: String?, response: HTTPURLResponse?, sentAt: Date?,
        stored: ((RequestKey) -> [StoredVariant])? = nil
    ) -> Explanation {
        let hop = core.resolve(request, variant: variant)
        let variants = stored.map { hop.key.map($0) ?? [] } ?? core.storedResponses(for: hop)
        let now = core.now
        let fields = response.map { HeaderFields($0) }
        let received = response.map {
            ($0, sentAt: sentAt ?? now, options: core.cachingOptions(for: hop, response: fields))
        }
        var explainer = Explainer(
            request, key: hop.decision, variants: variants, now: now,
            options: core.cachingOptions(for: hop, stored: variants.filter(\.isHTTP)),
            received: received)
        explainer.variant = variant
        explainer.salt = core.salt
        explainer.groupFields = core.configuration.groupFields
        explainer.marksGroupsStale = core.configuration.marksGroupsStale && core.configuration.storageMaker == nil
        explainer.comparesDigests = core.configuration.wrongDigest != .accepted
        explainer.largestBody = stored == nil ? core.largestStorableBody : nil
        explainer.asksTheApp = core.configuration.willCacheResponse != nil
        explainer.cacheOptions = hop.options(for: fields)
        explainer.refusal = fields.flatMap { hop.refusal(of: $0) }
        return explainer.explanation()
    }
}
