import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// What a cache does with one request, and why, clause by clause. Made by ``DiskURLCache/explanation(for:response:sentAt:)``
    /// and ``CacheInspector/explanation(for:response:sentAt:now:)``.
    public struct Explanation: Sendable, Hashable, CustomStringConvertible {
        /// One statement.
        public struct Clause: Sendable, Hashable {
            /// What the clause is about.
            public let topic: Topic
            /// A sentence or a few, for a person.
            public let text: String
            /// Where the rule is written, such as `RFC 9111 §4.2.1`; nil where the clause states a fact, or a choice of
            /// this cache.
            public let source: String?
        }

        /// What a clause is about. The order is the order in which a cache decides.
        public enum Topic: String, Sendable, Hashable, CaseIterable {
            /// What tells this request apart from others.
            case key
            /// What the request itself asks of a cache.
            case request
            /// What is stored under the key, and which of it fits.
            case stored
            /// Lifetime and age, with the numbers.
            case freshness
            /// What the origin could be asked with.
            case validators
            /// What the cache does now.
            case decision
            /// Whether the response that was given would be stored.
            case storing
            /// What would make it cacheable, or cacheable for longer.
            case advice
        }

        /// What the cache does now.
        public enum Decision: Sendable, Hashable {
            /// Answers without the network.
            case answersFromStore(isStale: Bool)
            /// Asks the origin whether what is stored is still valid, or for the part that is missing.
            case asksOrigin
            /// Loads the whole response from the network.
            case loads
            /// Fails, since the network may not be asked.
            case fails
            /// The cache has no part in the request.
            case passesBy
        }

        /// What the cache does now.
        public let decision: Decision
        /// Whether the response that was given would be stored; nil where none was given.
        public let storesResponse: Bool?
        /// In the order of their topics.
        public let clauses: [Clause]

        /// The clauses under their topics, one on each line.
        public var description: String {
            Topic.allCases.compactMap { topic -> String? in
                let lines = clauses.filter { $0.topic == topic }.map { clause in
                    "  " + clause.text + (clause.source.map { " [\($0)]" } ?? "")
                }
                return lines.isEmpty ? nil : ([topic.rawValue] + lines).joined(separator: "\n")
            }.joined(separator: "\n")
        }
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
                    candidate: Candidate(response: $0, bodyLength: variant.bodyLength), place: variant.layer.rawValue)
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
                    place: CacheLayer.disk.rawValue)
            }
        }
    }
}
