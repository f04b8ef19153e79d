import Foundation

/// `Cache-Control` of a version.
struct ModelControl: Sendable, Hashable, CustomStringConvertible {
    var maxAge = 60
    var noStore = false
    var noCache = false
    var staleWhileRevalidate = 0

    var description: String { field }

    var isNeverFresh: Bool { noStore || noCache || maxAge == 0 }

    var field: String {
        if noStore { return "no-store" }
        if noCache { return "no-cache" }
        return staleWhileRevalidate > 0
            ? "max-age=\(maxAge), stale-while-revalidate=\(staleWhileRevalidate)" : "max-age=\(maxAge)"
    }
}

/// What is asked: two requests with equal facts but the language are the same key.
struct ModelRequest: Sendable, Hashable, CustomStringConvertible {
    var path: String
    /// `Authorization`.
    var user: String?
    /// `Accept-Language`.
    var language: String
    /// Another spelling of the URL, which means the same key.
    var isSpelledOtherwise = false

    var description: String { "\(path)\(isSpelledOtherwise ? "#part" : "") for \(user ?? "nobody"), \(language)" }
}

/// An answer of the origin, a 304 among them, or a response that is stored by hand.
struct ModelItem: Sendable {
    enum Kind: Sendable {
        case whole, notModified, head, byHand, redirect
    }

    let number: Int
    let kind: Kind
    let request: ModelRequest
    let varies: Bool
    let version: Int
    let tag: String?
    let control: ModelControl
    /// The load that asked; nil for what is stored by hand.
    let asker: Int?
    /// The path to which a redirect leads.
    var target: String?
    /// 0 is the process of the test.
    var process = 0
    /// When the origin was asked, or when the call that stores by hand began.
    var born = 0
    var bornSeconds: TimeInterval = 0
    /// When the load that asked began.
    var askerBegan = 0
    /// When the origin began to answer.
    var answered = Int.max
    /// Since then lookups see the item, or something newer.
    var visible: Int?

    /// Of a redirect.
    var status: Int { [301, 302, 307, 308][version % 4] }
    var isTemporary: Bool { kind == .redirect && [302, 307].contains(status) }

    var length: Int {
        if number % 7 == 0 { return 20_000 }
        return number % 3 == 0 ? 3_000 : 40
    }

    var body: Data {
        var text = "\(number) \(request.path) v\(version) "
        while text.utf8.count < length { text += "\(number)-" }
        return Data(text.utf8)
    }

    var fields: [String: String] {
        var fields = ["Cache-Control": control.field, "X-Check": "\(number)"]
        fields["ETag"] = tag
        if varies { fields["Vary"] = "Accept-Language" }
        fields["Location"] = target
        if kind == .whole || kind == .byHand || kind == .redirect { fields["X-Token"] = "\(number)" }
        return fields
    }

    var description: String {
        let asked = asker.map { "asked by load \($0)" } ?? "by process \(process)"
        return "item \(number) \(kind) of \(request.path) \(target.map { "to \($0) " } ?? "")v\(version), "
            + "\(control.field), \(tag ?? "no tag"), "
            + "\(request.language), \(request.user ?? "nobody"), \(asked)"
    }

    /// Whether a store of the one takes the place of the other.
    func replaces(_ other: ModelItem) -> Bool {
        request.path == other.request.path && request.user == other.request.user
            && (!varies || request.language == other.request.language)
    }
}

struct ModelRemoval: Sendable {
    enum Scope: Sendable {
        /// One key, all its variants.
        case key(path: String, user: String?)
        /// A URL, whatever else the key holds.
        case url(String)
        case everything
        /// What was stored at or after a time.
        case since(TimeInterval)
    }

    let scope: Scope
    let begin: Int
    /// Far away as long as the call has not returned.
    var end = Int.max
    let process: Int

    /// True only for what was certainly asked for or stored before the removal began.
    func concerns(_ item: ModelItem) -> Bool {
        (item.kind == .byHand ? item.visible ?? .max : item.born) < begin && matches(item)
    }

    /// Whether the removal may keep the item from being stored at all: the item was under way meanwhile.
    func mayKeepOut(_ item: ModelItem) -> Bool {
        guard end > item.askerBegan, begin < item.visible ?? .max else { return false }
        // What is under way is stored after the time that was given.
        if case .since = scope { return true }
        return matches(item)
    }

    private func matches(_ item: ModelItem) -> Bool {
        switch scope {
        case .key(let path, let user): return item.request.path == path && item.request.user == user
        case .url(let path): return item.request.path == path
        case .everything: return true
        // What was fetched may be stored later than it was asked for.
        case .since(let seconds): return item.bornSeconds >= seconds
        }
    }
}

struct ModelLoad: Sendable, CustomStringConvertible {
    enum Policy: Sendable, CaseIterable {
        case useProtocol, reload, revalidate, elseLoad, dontLoad
    }

    var request: ModelRequest
    var method = "GET"
    var policy = Policy.useProtocol
    /// A call of `cachedResponse(for:)`: freshness is not asked.
    var isLookup = false
    var process = 0
    var number = 0
    var begin = 0
    var beginSeconds: TimeInterval = 0
    /// Far away until the load has ended with an answer.
    var end = Int.max

    var path: String { request.path }

    /// The same load, whose request is for another path.
    func redirected(to path: String) -> ModelLoad {
        var load = self
        load.request.path = path
        return load
    }

    var description: String {
        isLookup
            ? "lookup of \(method) \(path) for \(request.user ?? "nobody"), \(request.language), by process \(process)"
            : "\(method) \(path) for \(request.user ?? "nobody"), \(request.language), \(policy)"
    }
}

struct ModelAnswer: Sendable {
    let status: Int
    /// Of the URL that answered, which a redirect may have led to.
    let path: String
    /// The number in the head.
    let token: Int?
    let check: Int?
    let body: Data

    /// The number in the body.
    var bodyToken: Int? {
        String(decoding: body.prefix(12), as: UTF8.self).split(separator: " ").first.flatMap { Int($0) }
    }

    var description: String {
        "\(status) by \(path), item \(token.map(String.init) ?? "-"), checked by \(check.map(String.init) ?? "-"), "
            + "\(body.count) bytes of \(bodyToken.map(String.init) ?? "-")"
    }
}
