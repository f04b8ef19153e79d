import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// The decisions of a cache about one request, and their reasons, clause by clause. Made by
    /// ``DiskURLCache/explanation(for:variant:response:sentAt:)`` and
    /// ``CacheInspector/explanation(for:variant:response:sentAt:now:)``.
    public struct Explanation: Sendable, Hashable, CustomStringConvertible {
        /// The outcome of a load now: ``CacheLoadReport/Outcome/revalidated(_:)`` if it would send a conditional request, assuming that the
        /// origin confirms the stored response. Otherwise the network is assumed to answer.
        public let outcome: CacheLoadReport.Outcome
        /// Why the given response would not be stored; nil when it would be, and when none was given.
        public let notStoredReason: CacheReason?
        /// The explanation for a person, under headings, with blank lines between: the key, the request's demands, the stored responses,
        /// freshness with its numbers, validators, the decision, whether the answer is stored, and advice.
        /// A sentence ends with the source of its rule, such as `[RFC 9111 §4.2.1]`.
        public let description: String
    }

    /// How this cache would handle a request now, and why. Rules and treatments count.
    ///
    /// Reads stored heads on the caller's thread, sends no request, stores nothing.
    /// - Parameters:
    ///   - request: the request to explain.
    ///   - variant: the variant of ``load(_:through:variant:redirect:)``; nil for `URLSession` and all clients that share its entries.
    ///   - response: the origin's answer, to learn whether it would be stored; nil to explain the request only.
    ///     Its arrival counts as now.
    ///   - sentAt: when the request for it was sent; nil: now.
    public func explanation(
        for request: URLRequest, variant: String? = nil, response: HTTPURLResponse? = nil, sentAt: Date? = nil
    ) -> Explanation {
        let key = keyDecision(for: request).variant(variant)
        let stored = key.key.map { store.lookup($0).variants() } ?? []
        let variants = stored.compactMap { variant in
            variant.metadata.http.map {
                Explainer.Variant(
                    candidate: Candidate(response: $0, bodyLength: variant.bodyLength), layer: variant.layer)
            }
        }
        let now = configuration.clock.now()
        var explainer = Explainer(
            request, key: key, variants: variants, now: now,
            options: cachingOptions(for: request, response: variants.first?.candidate.response.fields))
        explainer.variant = variant
        explainer.treatment = treatment(for: request, contentType: response?.value(forHTTPHeaderField: "Content-Type"))
        if let response {
            let fields = HeaderFields(response)
            explainer.take(
                fields, status: response.statusCode, sentAt: sentAt,
                options: cachingOptions(for: request, response: fields))
        }
        return explainer.explanation()
    }
}

extension CacheInspector {
    /// The variants of `CachingHTTPClient`, tried when no variant is given.
    private static let wellKnownVariants = ["coded", "own-coding"]

    /// How a cache on this directory would handle a request now, and why: with the standard key policy and the standard
    /// options, since the app's own rules are not known here. ``DiskURLCache/DiskURLCache/explanation(for:variant:response:sentAt:)``
    /// knows them.
    ///
    /// Takes no lock, changes nothing, sends no request.
    /// - Parameters:
    ///   - request: the request to explain.
    ///   - variant: the variant of ``DiskURLCache/DiskURLCache/load(_:through:variant:redirect:)``. Nil tries the entries of `URLSession`,
    ///     and if it finds none, those of a `CachingHTTPClient`.
    ///   - response: the origin's answer, to learn whether it would be stored; nil to explain the request only.
    ///     Its arrival counts as `now`.
    ///   - sentAt: when the request for it was sent; nil: `now`.
    ///   - now: the time that ages are counted to.
    public func explanation(
        for request: URLRequest, variant: String? = nil, response: HTTPURLResponse? = nil, sentAt: Date? = nil,
        now: Date = Date()
    ) -> DiskURLCache.Explanation {
        var (key, variants, name) = (KeyPolicy.standard.decision(for: request), [Explainer.Variant](), variant)
        var options = CachingOptions()
        var otherVariants: [String] = []
        if case .key(let plain) = key {
            // Whether the cache is shared is not known here.
            let places = (variant.map { [$0] } ?? [nil] + Self.wellKnownVariants).flatMap { name in
                [(name, plain.variant(name), false), (name, plain.inSharedCache.variant(name), true)]
            }
            key = .key(plain.variant(variant))
            for (place, placeKey, isShared) in places {
                let found = self.variants(of: placeKey)
                guard !found.isEmpty else { continue }
                if variants.isEmpty {
                    (key, variants, name, options.isShared) = (.key(placeKey), found, place, isShared)
                } else if let place, place != name {
                    otherVariants.append(place)
                }
            }
        }
        var explainer = Explainer(request, key: key, variants: variants, now: now, options: options)
        (explainer.variant, explainer.otherVariants) = (name, otherVariants)
        if let response {
            explainer.take(HeaderFields(response), status: response.statusCode, sentAt: sentAt, options: options)
        }
        return explainer.explanation()
    }

    private func variants(of key: RequestKey) -> [Explainer.Variant] {
        let reader = RecordReader(files: files, paths: paths, owner: owner)
        let diskKey = key.diskKey
        return (0..<RecordName.slots).compactMap { slot -> LoadedRecord? in
            guard
                case .record(let record) = reader.read(
                    RecordName(key: diskKey.name, slot: slot), .head, limit: .max >> 1),
                record.header.digest == diskKey.digest
            else {
                return nil
            }
            return record
        }.sorted { $0.header.sequence > $1.header.sequence }.compactMap { record in
            record.metadata.http.map {
                Explainer.Variant(
                    candidate: Candidate(response: $0, bodyLength: record.header.bodyLength),
                    layer: .disk)
            }
        }
    }
}
