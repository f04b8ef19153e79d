import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The primary cache key of a request (RFC 9111 §2), as a `DiskURLCache.KeyPolicy` makes it. Equal requests make equal keys.
package struct RequestKey: Sendable, Hashable {
    /// The parts of a request that distinguish it from others. They may hold credentials, so the text stays in memory.
    let text: String
    /// The canonical URL as far as the key policy keeps it, without what the policy adds: names the resource for invalidation
    /// (RFC 9111 §4.4).
    var uri: String { otherURI ?? text }
    /// Nil when the text is that URL, as it is for a plain `GET`.
    private let otherURI: String?
    /// The request is a `HEAD`, which has the key of a `GET`. No part of the key's identity.
    let isForHead: Bool
    /// The hash of `text`, computed once: a lookup needs it several times.
    package let hashValue: Int

    /// - Parameter uri: nil when it is the text.
    init(text: String, uri: String?, isForHead: Bool) {
        self.text = text
        otherURI = uri
        self.isForHead = isForHead
        hashValue = TextHash.hash(text)
    }

    package static func == (left: RequestKey, right: RequestKey) -> Bool {
        left.hashValue == right.hashValue && left.text == right.text
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(hashValue)
    }

    /// One of `count` stripes; all keys of one resource get the same.
    func stripe(of count: Int) -> Int { Int(resource % UInt64(count)) }

    /// Names the records of the key on disk. Cheap.
    var name: KeyName { KeyName(text, resource: resource) }

    /// Proves that a record belongs to the key. Costs a SHA-256, so it is computed only when a record is read or written.
    var digest: KeyDigest { SHA256Digest.digest(of: text) }

    /// The key as records hold it.
    package var diskKey: DiskKey { DiskKey(name: name, digest: digest, hostHash: hostHash) }

    /// The key under which a response is kept that was stored for `HEAD` itself: it answers no `GET`.
    var storedForHead: RequestKey { RequestKey(text: "HEAD \(text)", uri: uri, isForHead: false) }

    /// The key under which a response is kept that a lookup of this one found.
    func keeping(_ response: StoredResponse?) -> RequestKey {
        isForHead && response?.method == "HEAD" ? storedForHead : self
    }

    /// The key in a shared cache: on one folder it finds no response that a private cache stored, and the other way round.
    package var inSharedCache: RequestKey { RequestKey(text: "\(text)\nshared", uri: uri, isForHead: isForHead) }

    /// The key of the same request in a named form; nil gives the key itself.
    package func variant(_ name: String?) -> RequestKey {
        guard let name else { return self }
        return RequestKey(text: "\(text)\nvariant:\(name)", uri: uri, isForHead: isForHead)
    }

    /// The hash of the canonical URL: names the resource on disk.
    var resource: UInt64 { KeyName.resource(of: uri) }

    var hostHash: UInt32 {
        URLCanonicalizer.withHost(ofNormal: uri) { UInt32(truncatingIfNeeded: Self.hash64($0, seed: 2)) }
    }

    static func hostHash(_ host: String) -> UInt32 {
        UInt32(truncatingIfNeeded: hash64(host, seed: 2))
    }

    private static func hash64(_ text: String, seed: UInt64) -> UInt64 {
        var text = text
        return text.withUTF8 { hash64($0, seed: seed) }
    }

    /// Two texts may have one hash, so a removal by hash may remove too much.
    private static func hash64(_ bytes: UnsafeBufferPointer<UInt8>, seed: UInt64) -> UInt64 {
        TextHash.hash(UnsafeRawBufferPointer(bytes), seed: seed)
    }
}

/// Whether a request has a key, and why it has none.
package enum KeyDecision: Sendable {
    case key(RequestKey)
    case none(DiskURLCache.Reason)

    var key: RequestKey? { if case .key(let key) = self { key } else { nil } }

    /// The reason why there is no key; nil if there is one.
    var refusal: DiskURLCache.Reason? { if case .none(let reason) = self { reason } else { nil } }

    /// See `RequestKey.variant(_:)`.
    func variant(_ name: String?) -> KeyDecision { key.map { .key($0.variant(name)) } ?? self }
}

extension DiskURLCache.KeyPolicy {
    /// The key of a request; nil when the request has none.
    func key(for request: URLRequest) -> RequestKey? { decision(for: request).key }

    package func decision(for request: URLRequest) -> KeyDecision {
        guard let url = request.url else { return .none(.notHTTP) }
        let (credentials, hostField) = Self.fieldsInEveryKey(of: request, url: url)
        let address = url.absoluteString
        // Most requests are plain: no string is built for them.
        if isPlain, credentials == nil, hostField == nil, request.httpMethod == "GET", request.httpBody == nil,
            request.httpBodyStream == nil, URLCanonicalizer.isNormal(address)
        {
            return .key(RequestKey(text: address, uri: nil, isForHead: false))
        }
        guard let parts = URLCanonicalizer.parts(of: address) else { return .none(.notHTTP) }
        if parts.hasDotSegments { return .none(.dotSegments) }
        // With a stream set, `httpBody` is nil: the body that will be sent is unknown, so no answer may be shared.
        guard request.httpBodyStream == nil else { return .none(.streamedBody) }
        let method = request.httpMethod ?? "GET"
        let uri = uri(of: parts)
        var text: String
        if let custom {
            guard let key = custom(request) else { return .none(.keyPolicy) }
            text = "custom:\(key)"
        } else {
            // A HEAD may be answered by the response to a GET, so both have one key.
            let isRead = method == "GET" || method == "HEAD"
            guard isRead || bodyForms[method] != nil else { return .none(.methodNotCached) }
            // Requests whose bodies are not in the key would share answers.
            guard bodyForms[method] != nil || (request.httpBody ?? Data()).isEmpty else { return .none(.bodyNotKeyed) }
            text = recipeText(request, method: isRead ? "GET" : method, uri: uri)
        }
        if !parts.userInformation.isEmpty { text += "\nuser:\(parts.userInformation)" }
        if let credentials { text += "\nauthorization:\(credentials)" }
        if let host = hostField ?? (parts.hasTrailingDot ? parts.host + "." : nil) { text += "\nhost:\(host)" }
        return .key(RequestKey(text: text, uri: uri, isForHead: method == "HEAD"))
    }

    /// The `Authorization` field, and the `Host` field if it names another host than the URL (RFC 9110 §7.1).
    private static func fieldsInEveryKey(of request: URLRequest, url: URL) -> (credentials: String?, host: String?) {
        var (credentials, host): (String?, String?)
        for (name, value) in request.allHTTPHeaderFields ?? [:] {
            switch name.utf8.count {
            case 13 where name.equalsIgnoringASCIICase("Authorization"): credentials = value
            case 4 where name.equalsIgnoringASCIICase("Host"): host = value.lowercased()
            default: break
            }
        }
        guard let named = host else { return (credentials, nil) }
        let authority = (url.host ?? "").lowercased() + (url.port.map { ":\($0)" } ?? "")
        return (credentials, named == authority ? nil : named)
    }

    /// The standard policy: the key of a request is its method and its URL.
    var isPlain: Bool {
        custom == nil && headerNames.isEmpty && bodyForms.isEmpty && droppedQueryItems == nil && !sortsQueryItems
    }

    /// The URL without the query items that are no part of keys, the others in their order.
    func uri(of parts: URLCanonicalizer.Parts) -> String {
        guard custom == nil, droppedQueryItems != nil || sortsQueryItems else { return parts.url }
        var parts = parts
        parts.query = parts.query.flatMap(keyedQuery)
        return parts.url
    }

    private func recipeText(_ request: URLRequest, method: String, uri: String) -> String {
        // `GET` is left out: the key of the plain case is the URL itself.
        var text = method == "GET" ? uri : "\(method) \(uri)"
        for name in headerNames {
            // The length keeps a value from imitating the next part of the key.
            let value = request.value(forHTTPHeaderField: name)
            text += "\n\(name):\(value.map { "\($0.utf8.count):\($0)" } ?? "absent")"
        }
        if let form = bodyForms[request.httpMethod ?? "GET"] {
            text += "\nbody:\(Self.bodyDigest(request.httpBody ?? Data(), form: form).hex)"
        }
        return text
    }

    private func keyedQuery(_ query: String) -> String? {
        var items = query.split(separator: "&", omittingEmptySubsequences: false).map { item in
            (name: String(item.prefix { $0 != "=" }), text: item)
        }
        if let droppedQueryItems {
            items.removeAll { droppedQueryItems($0.name) }
        }
        if sortsQueryItems {
            // Stable: the position breaks ties between items of one name.
            let sorted = items.enumerated().sorted { ($0.element.name, $0.offset) < ($1.element.name, $1.offset) }
            items = sorted.map(\.element)
        }
        return items.isEmpty ? nil : items.map(\.text).joined(separator: "&")
    }

    private static func bodyDigest(_ body: Data, form: BodyForm) -> KeyDigest {
        switch form {
        case .bytes:
            return body.withUnsafeBytes { SHA256Digest.digest(of: $0) }
        case .json:
            guard let canonical = CanonicalJSON.text(of: body) else { return bodyDigest(body, form: .bytes) }
            // A marker keeps the canonical form of one body apart from the plain bytes of another.
            return (Data("json:".utf8) + canonical).withUnsafeBytes { SHA256Digest.digest(of: $0) }
        }
    }
}
