import Foundation

extension URLRequest {
    /// How the response to this request is treated; wins over all rules. Nil when only rules and configuration count.
    ///
    /// ```swift
    /// var request = URLRequest(url: url)
    /// request.cacheOptions = .init(storage: .memoryOnly, tags: ["account-7"])
    /// ```
    ///
    /// Never sent to the server. On Apple platforms the options are a `URLProtocol` property of the request. Foundation
    /// on Linux loses such properties, so there they are kept in `mainDocumentURL`, which Foundation does not use for
    /// loading.
    public var cacheOptions: DiskURLCache.Options? {
        get {
            guard let text = carriedOptions, let data = Data(base64Encoded: text) else { return nil }
            return try? JSONDecoder().decode(DiskURLCache.Options.self, from: data)
        }
        set {
            // The options hold finite numbers, names and flags, which can always be encoded.
            carriedOptions = newValue.flatMap { try? JSONEncoder().encode($0).base64EncodedString() }
        }
    }

    /// How long the response to this request counts as fresh, whatever the server sends: `.days(7)`. Nil
    /// leaves that to the server, rules and configuration. Sets ``DiskURLCache/DiskURLCache/Options/lifetime`` of
    /// ``cacheOptions``; `no-store` is obeyed in any case.
    public var cacheLifetime: DiskURLCache.TimeSpan? {
        get { if case .always(let time)? = cacheOptions?.lifetime { time } else { nil } }
        set {
            var changed = cacheOptions ?? DiskURLCache.Options()
            changed.lifetime = newValue.map { .always($0) }
            cacheOptions = changed == DiskURLCache.Options() ? nil : changed
        }
    }
}
