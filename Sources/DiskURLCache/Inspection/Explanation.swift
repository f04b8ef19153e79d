import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// What a cache does with one request, and why, clause by clause. Made by ``DiskURLCache/explanation(for:response:sentAt:)``
    /// and ``CacheInspector/explanation(for:response:sentAt:now:)``.
    public struct Explanation: Sendable, Hashable, CustomStringConvertible {
        /// What a load would report now: ``CacheLoadReport/Outcome/revalidated(_:)`` where it would ask the origin, should that
        /// confirm what is stored; else the network is taken to answer.
        public let outcome: CacheLoadReport.Outcome
        /// Why the response that was given would not be stored; nil where it would be, and where none was given.
        public let notStoredReason: CacheNotStoredReason?
        /// The whole of it for a person, under headings, with blank lines between: the key, what the request asks, what is stored,
        /// freshness with its numbers, validators, what the cache does, whether the answer is stored, what would change that.
        /// Behind a sentence is where its rule is written, such as `[RFC 9111 §4.2.1]`.
        public let description: String
    }

    /// What this cache would do with a request now, and why. Rules and treatments count.
    ///
    /// Reads what is stored on the caller's thread, asks no network, stores nothing.
    /// - Parameters:
    ///   - request: the request that is asked about.
    ///   - response: what the origin answered, to learn whether that would be stored; nil to look at the request only.
    ///     Its arrival counts as now.
    ///   - sentAt: when the request for it was sent; nil: now too.
    public func explanation(
        for request: URLRequest, response: HTTPURLResponse? = nil, sentAt: Date? = nil
    ) -> Explanation {
        let key = key(for: request)
        let stored = key.map { store.lookup($0).variants() } ?? []
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
    /// What a cache on this directory would do with a request now, and why: with the standard key policy and the standard
    /// options, since the app's own rules are not known here. ``DiskURLCache/DiskURLCache/explanation(for:response:sentAt:)``
    /// knows them.
    ///
    /// Takes no lock, changes nothing, asks no network.
    /// - Parameters:
    ///   - request: the request that is asked about.
    ///   - response: what the origin answered, to learn whether that would be stored; nil to look at the request only.
    ///     Its arrival counts as `now`.
    ///   - sentAt: when the request for it was sent; nil: `now` too.
    ///   - now: the time that ages are counted to.
    public func explanation(
        for request: URLRequest, response: HTTPURLResponse? = nil, sentAt: Date? = nil, now: Date = Date()
    ) -> DiskURLCache.Explanation {
        let key = KeyPolicy.standard.key(for: request)
        var found = key.map { variants(of: $0) } ?? []
        // Whether the cache is shared is not known here.
        if found.isEmpty, let key { found = variants(of: key.inSharedCache) }
        return Explainer.standard(
            request, key: key, variants: found, response: response, sentAt: sentAt,
            now: now)
    }

    private func variants(of key: RequestKey) -> [Explainer.Variant] {
        let reader = RecordReader(files: files, paths: paths)
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
