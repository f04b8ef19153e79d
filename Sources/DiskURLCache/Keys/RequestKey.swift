import Foundation

/// The primary cache key of a request (RFC 9111 §2), made by a `DiskURLCache.KeyPolicy`. Requests with equal keys share
/// responses.
package struct RequestKey: Sendable, Hashable {
    /// All parts of the request that make a difference. They may include credentials, so the text is kept in memory
    /// only.
    let text: String
    /// The canonical URL, without the query items that the key policy drops, and without what it adds. It identifies
    /// the resource for invalidation (RFC 9111 §4.4).
    package var uri: String { otherURI ?? text }
    /// Nil if `text` is that URL, as for a plain `GET`.
    private let otherURI: String?
    /// Whether the request is a `HEAD`, which has the same key as a `GET`: not compared.
    let isForHead: Bool
    /// Whether the policy, and not `Authorization`, tells the users apart: that field then selects nothing among what
    /// is stored under the key either. Not compared.
    let replacesAuthorization: Bool
    /// The hash of `text`, computed once: a lookup needs it several times.
    package let hashValue: Int
    /// The hash of the canonical URL: names the resource on disk. A hit in memory does not need it.
    var resource: UInt64 { if let otherURI { KeyName.resource(of: otherURI) } else { KeyName.resource(of: text) } }

    /// - Parameter uri: nil if it is the same as `text`.
    init(text: String, uri: String?, isForHead: Bool, replacesAuthorization: Bool = false) {
        self.text = text
        otherURI = uri
        self.isForHead = isForHead
        self.replacesAuthorization = replacesAuthorization
        hashValue = TextHash.hash(text)
    }

    package static func == (left: RequestKey, right: RequestKey) -> Bool {
        left.hashValue == right.hashValue && left.text == right.text
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(hashValue)
    }

    /// The file name of the key's records. Cheap to compute.
    var name: KeyName { KeyName(text, resource: resource) }

    /// Proves that a record belongs to the key, and of which host it is. Costs two SHA-256, so it is computed only when
    /// a record is read or written.
    var digest: KeyDigest { KeyDigest(ofKey: text, host: host) }

    /// The key in the form for the disk.
    package var diskKey: DiskKey { DiskKey(name: name, digest: digest, hostHash: hostHash) }

    /// The key as a record of its own has it.
    /// - Parameter url: the URL that the record has; nil if it has none.
    func diskKey(ofRecordWith url: String?) -> DiskKey {
        guard let url, isURL(url) else { return diskKey }
        return DiskKey(name: name, digest: .zero, hostHash: hostHash, isItsURL: true)
    }

    /// Whether the key is that URL, byte for byte.
    func isURL(_ url: String) -> Bool { text.hasSameBytes(as: url) }

    /// The key of an answer that may not be stored, and is held for a while (`TieredStore.hold`). The answer to a
    /// `HEAD` says nothing about a `GET`: some servers refuse the one and answer the other.
    func held(forHead: Bool) -> RequestKey {
        RequestKey(text: Self.heldPrefix + (forHead ? "HEAD " : "") + text, uri: uri, isForHead: false)
    }

    var isHeld: Bool { text.hasPrefix(Self.heldPrefix) }

    // No other key begins with a line break.
    private static let heldPrefix = "\nheld "

    private var host: String { URLCanonicalizer.host(ofNormal: uri) }

    /// Other hosts may have the same hash.
    var hostHash: UInt32 { HostName.hash(host) }
}

/// Whether a request has a key, and why it has none.
package enum KeyDecision: Sendable {
    case key(RequestKey)
    case none(DiskURLCache.Reason)

    package var key: RequestKey? { if case .key(let key) = self { key } else { nil } }

    var isKey: Bool { if case .key = self { true } else { false } }

    /// The reason why there is no key; nil if there is one.
    package var refusal: DiskURLCache.Reason? { if case .none(let reason) = self { reason } else { nil } }
}

extension RequestKey {
    /// What else distinguishes keys, besides the request: responses stored under one form do not answer requests under
    /// a different form.
    package struct Form: Sendable {
        /// If a shared and a private cache use the same folder, neither finds the responses of the other.
        package var isShared = false
        /// See ``LoadTransport/keyVariant``.
        package var variant: String?
        /// Credentials are in the key as digests with this salt; without a salt, as plain text.
        package var salt: CredentialSalt?

        package init(isShared: Bool = false, variant: String? = nil, salt: CredentialSalt? = nil) {
            self.isShared = isShared
            self.variant = variant
            self.salt = salt
        }

        var text: String {
            var text = isShared ? "\nshared" : ""
            if let variant { text += "\nvariant:\(variant)" }
            return text
        }
        var isPlain: Bool { !isShared && variant == nil }

        func salted(_ credentials: String) -> String { salt?.digest(of: credentials).hex ?? credentials }
    }
}

// Nearly all requests are plain: a GET of a URL in canonical form, without a body, `Authorization` or `Host`. Under the
// standard policy the URL is their key, and no other text has to be made.

extension RequestKey {
    /// The key of a plain request; nil for all others.
    /// - Parameter hasBody: asked last.
    private static func plain(
        method: String?, url: String, _ fields: HeaderFields, hasBody: @autoclosure () -> Bool
    ) -> RequestKey? {
        guard method == "GET", URLCanonicalizer.isNormal(url), !namesHostOrCredentials(fields), !hasBody() else {
            return nil
        }
        return RequestKey(text: url, uri: nil, isForHead: false)
    }

    /// Whether there is a field that belongs to the key of a request under every policy.
    private static func namesHostOrCredentials(_ fields: HeaderFields) -> Bool {
        var isFound = false
        fields.forEachField { name, _ in
            switch name.utf8.count {
            case 4: isFound = isFound || name.equalsIgnoringASCIICase("Host")
            case 13: isFound = isFound || name.equalsIgnoringASCIICase("Authorization")
            default: break
            }
        }
        return isFound
    }

    init?(plain request: DiskURLCache.Request) {
        let key = Self.plain(
            method: request.method, url: request.url, request.headerFields,
            hasBody: request.body != nil || request.hasBodyStream)
        guard let key else { return nil }
        self = key
    }

    /// The same key for Foundation's request, of which no more is read than is needed. Nil also for a request with
    /// options, which may name another key policy.
    /// - Parameter fields: of the request, which the caller has read.
    init?(plain request: URLRequest, _ fields: HeaderFields) {
        guard let url = request.url?.absoluteString else { return nil }
        let key = Self.plain(
            method: request.httpMethod, url: url, fields,
            hasBody: request.httpBody != nil || request.httpBodyStream != nil)
        guard let key, !request.mayCarryOptions else { return nil }
        self = key
    }
}

extension DiskURLCache.KeyPolicy {
    package func decision(
        for request: DiskURLCache.Request, _ form: RequestKey.Form = RequestKey.Form()
    ) -> KeyDecision {
        if isPlain, let key = RequestKey(plain: request) {
            if form.isPlain { return .key(key) }
            return .key(RequestKey(text: key.text + form.text, uri: key.text, isForHead: false))
        }
        return generalDecision(for: request, form)
    }

    /// The decision about any request, plain ones included.
    func generalDecision(for request: DiskURLCache.Request, _ form: RequestKey.Form) -> KeyDecision {
        let credentials = request.headerFields["Authorization"]
        guard let parts = URLCanonicalizer.parts(of: request.url) else {
            let isHTTP = ["http://", "https://"].contains { request.url.prefix($0.count).lowercased() == $0 }
            return .none(isHTTP ? .unusualHost : .notHTTP)
        }
        if parts.hasDotSegments { return .none(.dotSegments) }
        // The bytes that will be sent are not known, so the response must not be shared.
        guard !request.hasBodyStream else { return .none(.streamedBody) }
        let method = request.method
        let uri = uri(of: parts)
        var text: String
        if let custom {
            guard let key = custom(request.urlRequest) else { return .none(.keyPolicy) }
            // The length makes sure that the app's text cannot look like one of the parts that follow it.
            text = "custom:\(key.utf8.count):\(key)" + addedText(request, form, body: bodyForms[method])
        } else {
            // A HEAD may be answered by the response to a GET, so both have the same key.
            let isRead = method == "GET" || method == "HEAD"
            let bodyForm = bodyForm(of: method)
            guard isRead || bodyForm != nil else { return .none(.methodNotCached) }
            let isEmpty = (request.body ?? Data()).isEmpty
            // If the body is not in the key, requests with different bodies would share a response.
            guard bodyForm != nil || isEmpty else { return .none(.bodyNotKeyed) }
            // Content that the cache does not see, since Foundation sends it, would not be in the key either.
            if bodyForm == .byMediaType, isEmpty { return .none(.queryWithoutContent) }
            text = recipeText(request, form, method: isRead ? "GET" : method, uri: uri)
        }
        if !parts.userInformation.isEmpty { text += "\nuser:\(form.salted(parts.userInformation))" }
        let user = userText(of: request, form)
        text += user ?? credentials.map { "\nauthorization:\(form.salted($0))" } ?? ""
        // RFC 9110 §7.1: the `Host` field may differ from the host of the URL.
        let hostField = request.headerFields["Host"].map { parts.canonical(hostField: $0) }
        if let hostField, hostField[...] != parts.authority {
            text += "\nhost:\(hostField)"
        } else if parts.hasTrailingDot {
            text += "\nhost:\(parts.host)."
        }
        return .key(
            RequestKey(
                text: text + form.text, uri: uri, isForHead: method == "HEAD", replacesAuthorization: user != nil))
    }

    /// The standard policy: the key of a request is its method and its URL.
    var isPlain: Bool {
        custom == nil && fieldNames.isEmpty && bodyForms.isEmpty && droppedQueryItems == nil && !sortsQueryItems
            && identifiesByAuthorization
    }

    /// Whether `Authorization` alone tells the users apart.
    var identifiesByAuthorization: Bool { if case .authorization = user { true } else { false } }

    /// What tells the user apart in the place of `Authorization`; nil if that field does. In a shared cache that is
    /// never left to the app: a mistake would give one user's responses to all others.
    private func userText(of request: DiskURLCache.Request, _ form: RequestKey.Form) -> String? {
        if form.isShared { return nil }
        switch user {
        case .authorization: return nil
        case .ignored: return ""
        case .named(let name):
            guard let name = name(request.urlRequest) else { return nil }
            let salted = form.salted("account \(name)")
            // The length makes sure that a name cannot look like the next part of the key.
            return "\naccount:\(salted.utf8.count):\(salted)"
        }
    }

    /// The URL without the query items that the policy drops; the rest in their order, or sorted.
    func uri(of parts: URLCanonicalizer.Parts) -> String {
        guard droppedQueryItems != nil || sortsQueryItems else { return parts.url }
        var parts = parts
        parts.query = parts.query.flatMap(keyedQuery)
        return parts.url
    }

    private func recipeText(_ request: DiskURLCache.Request, _ form: RequestKey.Form, method: String, uri: String)
        -> String
    {
        // `GET` is left out: the key of the plain case is the URL itself.
        (method == "GET" ? uri : "\(method) \(uri)") + addedText(request, form, body: bodyForm(of: request.method))
    }

    /// The fields and the body that the policy adds to a key, also to one that the app makes.
    private func addedText(_ request: DiskURLCache.Request, _ form: RequestKey.Form, body: BodyForm?) -> String {
        var text = ""
        for name in fieldNames {
            // The length makes sure that a value cannot look like the next part of the key.
            let value = request.headerFields[name].map { VaryKey.isCredential(name) ? form.salted($0) : $0 }
            text += "\n\(name):\(value.map { "\($0.utf8.count):\($0)" } ?? "absent")"
        }
        if let body { text += KeyedContent.text(of: request, form: body) }
        return text
    }

    private func keyedQuery(_ query: String) -> String? {
        // By bytes, which takes half the time that characters take.
        let (ampersand, equals) = (UInt8(ascii: "&"), UInt8(ascii: "="))
        var items = query.utf8.split(separator: ampersand, omittingEmptySubsequences: false).map { item in
            (name: String(Substring(item.prefix { $0 != equals })), text: Substring(item))
        }
        if let droppedQueryItems {
            items.removeAll { droppedQueryItems($0.name) }
        }
        if sortsQueryItems {
            // Items with the same name keep their order.
            let sorted = items.enumerated().sorted { ($0.element.name, $0.offset) < ($1.element.name, $1.offset) }
            items = sorted.map(\.element)
        }
        return items.isEmpty ? nil : items.map(\.text).joined(separator: "&")
    }
}
