import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension URLRequest {
    /// How the response to this request is treated; wins over all rules. Nil when only rules and configuration count.
    ///
    /// ```swift
    /// var request = URLRequest(url: url)
    /// request.cacheTreatment = .init(storage: .memoryOnly, tags: ["account-7"])
    /// ```
    ///
    /// Never sent to the server. On Apple platforms the treatment is a `URLProtocol` property of the request. Foundation on Linux
    /// loses such properties, so there it is kept in `mainDocumentURL`, which Foundation does not use for loading.
    public var cacheTreatment: CacheTreatment? {
        get {
            guard let text = carriedTreatment, let data = Data(base64Encoded: text) else { return nil }
            return try? JSONDecoder().decode(CacheTreatment.self, from: data)
        }
        set {
            // A treatment holds numbers, names and flags: encoding fails for a number that is none, which means nothing.
            carriedTreatment = newValue.flatMap { try? JSONEncoder().encode($0).base64EncodedString() }
        }
    }

    /// How long the response to this request counts as fresh, whatever the server sends, in seconds: `.days(7)`. Nil leaves that to
    /// the server, rules and configuration. Sets ``CacheTreatment/lifetime`` of ``cacheTreatment``; `no-store` is obeyed in any case.
    public var cacheLifetime: TimeInterval? {
        get { if case .always(let seconds)? = cacheTreatment?.lifetime { seconds } else { nil } }
        set {
            var changed = cacheTreatment ?? CacheTreatment()
            changed.lifetime = newValue.map { .always($0) }
            cacheTreatment = changed == CacheTreatment() ? nil : changed
        }
    }

    #if canImport(Darwin)
        var mayCarryTreatment: Bool { carriedTreatment != nil }

        private static var propertyName: String { "DiskURLCache.treatment" }

        private var carriedTreatment: String? {
            get { URLProtocol.property(forKey: Self.propertyName, in: self) as? String }
            set {
                guard let request = (self as NSURLRequest).mutableCopy() as? NSMutableURLRequest else { return }
                if let newValue {
                    URLProtocol.setProperty(newValue, forKey: Self.propertyName, in: request)
                } else {
                    URLProtocol.removeProperty(forKey: Self.propertyName, in: request)
                }
                self = request as URLRequest
            }
        }
    #else
        /// A quick look, since it is taken at each lookup.
        var mayCarryTreatment: Bool { mainDocumentURL != nil }

        private static var prefix: String { "diskurlcache-treatment:" }

        private var carriedTreatment: String? {
            get {
                guard let text = mainDocumentURL?.absoluteString, text.hasPrefix(Self.prefix) else { return nil }
                return String(text.dropFirst(Self.prefix.count))
            }
            set {
                if let newValue {
                    mainDocumentURL = URL(string: Self.prefix + newValue)
                } else if carriedTreatment != nil {
                    mainDocumentURL = nil
                }
            }
        }
    #endif
}
