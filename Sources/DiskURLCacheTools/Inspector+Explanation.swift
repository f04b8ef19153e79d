import DiskURLCache
import Foundation

extension DiskURLCache.Inspector {
    /// The variants to try: the one that is given, or else that of `URLSession` and those of a `CachingHTTPClient`.
    private static func variants(_ given: String?) -> [String?] {
        given == nil ? [nil, "coded", "decoded", "own-coding"] : [given]
    }

    /// Explains what a cache with this directory would do with a request now. The app's rules and key policy are not
    /// known here, so the standard ones are assumed; `DiskURLCache.explanation(for:variant:response:sentAt:)` knows
    /// them.
    ///
    /// Takes no lock, changes nothing, and sends no request.
    /// - Parameters:
    ///   - request: the request to explain.
    ///   - variant: the variant of `DiskURLCache.load(_:through:variant:progress:redirect:)`. Nil: the entries of
    ///     `URLSession`, or if there are none, those of a `CachingHTTPClient`.
    ///   - response: the origin's answer, to learn whether it would be stored; nil to explain the request only. It
    ///     counts as having arrived `now`.
    ///   - sentAt: when the request for it was sent; nil: `now`.
    ///   - now: the time for which ages are computed.
    public func explanation(
        for request: URLRequest, variant: String? = nil, response: HTTPURLResponse? = nil, sentAt: Date? = nil,
        now: Date = Date()
    ) -> DiskURLCache.Explanation {
        let request = DiskURLCache.Request(request)
        var key = decision(request, variant)
        var variants = [StoredVariant]()
        var name = variant
        var options = CachingOptions()
        var otherVariants: [String] = []
        // It is not known whether the cache is shared, so both are tried.
        let candidates = Self.variants(variant).flatMap { [($0, false), ($0, true)] }
        for (candidate, isShared) in candidates {
            let decision = decision(request, candidate, isShared: isShared)
            guard let own = decision.key else { continue }
            let found = stored(under: own)
            guard !found.isEmpty else { continue }
            if variants.isEmpty {
                key = decision
                variants = found
                name = candidate
                options.isShared = isShared
            } else if let candidate, candidate != name {
                otherVariants.append(candidate)
            }
        }
        let received = response.map { ($0, sentAt: sentAt ?? now, options: options) }
        var explainer = Explainer(
            request, key: key, variants: variants, now: now, options: options, received: received)
        explainer.variant = name
        explainer.salt = salt
        explainer.otherVariants = otherVariants
        return explainer.explanation()
    }

    /// Explains what a cache with this directory and the settings of another cache would do with a request now: that
    /// one need not have a directory.
    ///
    /// Takes no lock, changes nothing, and sends no request. What is stored for a request with credentials is not
    /// found, since keys with credentials differ from one directory to the next.
    /// - Parameters:
    ///   - request: the request to explain.
    ///   - cache: its rules, options and key policy apply. What it has stored itself does not count.
    ///   - variant: as of `explanation(for:variant:response:sentAt:now:)`.
    ///   - response: the origin's answer, to learn whether it would be stored; nil to explain the request only.
    ///   - sentAt: when the request for it was sent; nil: now.
    public func explanation(
        for request: URLRequest, by cache: DiskURLCache, variant: String? = nil, response: HTTPURLResponse? = nil,
        sentAt: Date? = nil
    ) -> DiskURLCache.Explanation {
        let request = DiskURLCache.Request(request)
        let name = Self.variants(variant).first { name in
            cache.core.resolve(request, variant: name).key.map { !stored(under: $0).isEmpty } ?? false
        }
        return cache.explanation(
            of: request, variant: name ?? variant, response: response, sentAt: sentAt, stored: stored(under:))
    }

    private func decision(_ request: DiskURLCache.Request, _ variant: String?, isShared: Bool = false) -> KeyDecision {
        DiskURLCache.KeyPolicy.standard.decision(
            for: request, RequestKey.Form(isShared: isShared, variant: variant, salt: salt))
    }

    private var salt: CredentialSalt? {
        (try? CredentialSalt.bytes(files, paths, owner: owner, adding: nil)).map(CredentialSalt.init)
    }

    private func stored(under key: RequestKey) -> [StoredVariant] {
        records(of: key).map { record in
            StoredVariant(record.metadata, bodyLength: record.footer.bodyLength, from: .disk) { nil }
        }
    }

    /// The records of a key, the most recent first.
    private func records(of key: RequestKey) -> [LoadedRecord] {
        let name = key.diskKey.name
        var records: [LoadedRecord] = []
        for slot in 0..<RecordName.slots {
            let reading = reader.read(RecordName(key: name, slot: slot), .tail, limit: .max)
            guard case .record(let record) = reading, record.isOf(key) else { continue }
            records.append(record)
        }
        return records.sorted { $0.footer.sequence > $1.footer.sequence }
    }
}
