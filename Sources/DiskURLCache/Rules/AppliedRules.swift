import Foundation

/// The rules that concern one request, in their order. They are found when this is made, so each closure of the app is
/// called once; only the rules by content type wait for a response.
struct AppliedRules: Sendable {
    /// With their places in `Configuration.rules`, which reasons name.
    private let rules: [(index: Int, rule: DiskURLCache.Rule)]

    init(_ rules: [DiskURLCache.Rule], to request: DiskURLCache.Request) {
        guard !rules.isEmpty else {
            self.rules = []
            return
        }
        // Nil for a URL that no key can be made of.
        let url = URLCanonicalizer.canonical(request.url)
        // Parsed when the first rule asks for it.
        lazy var json = JSONBody(of: request)
        self.rules = rules.enumerated().compactMap { index, rule in
            if rule.match.isByJSON, case .unreadable = json { return rule.ifItCannotBeJudged.map { (index, $0) } }
            return rule.mayApply(to: request, canonicalURL: url, json: json.object) ? (index, rule) : nil
        }
    }

    var areNone: Bool { rules.isEmpty }

    /// The options of the request, and of the rules for all that it leaves open.
    /// - Parameter contentType: of the response, once there is one.
    func options(after own: DiskURLCache.Options?, contentType: String? = nil) -> DiskURLCache.Options {
        var options = own ?? DiskURLCache.Options()
        for (_, rule) in rules where rule.applies(to: contentType) { options.complete(from: rule.appliedOptions) }
        return options
    }

    /// Whether the content type of the response may change the options.
    var dependOnContentType: Bool { rules.contains { $0.rule.match.isByContentType } }

    /// Why a request is never cached, whatever its response: which options say `.never`. A rule by content type that
    /// stores can be judged only when the response is known: until then no later rule keeps the request out.
    func reasonToKeepOut(_ own: DiskURLCache.Options?) -> DiskURLCache.Reason? {
        if let storage = own?.storage { return storage == .never ? .never : nil }
        for (index, rule) in rules {
            guard let storage = rule.cacheOptions.storage else { continue }
            if !rule.match.isByContentType { return storage == .never ? Self.never(by: rule, at: index) : nil }
            if storage != .never { return nil }
        }
        return nil
    }

    /// Why a response is not stored: which options say `.never`. Nil if none does.
    func reasonNotToStore(_ own: DiskURLCache.Options?, contentType: String?) -> DiskURLCache.Reason? {
        if let storage = own?.storage { return storage == .never ? .never : nil }
        for (index, rule) in rules where rule.applies(to: contentType) {
            guard let storage = rule.cacheOptions.storage else { continue }
            return storage == .never ? Self.never(by: rule, at: index) : nil
        }
        return nil
    }

    private static func never(by rule: DiskURLCache.Rule, at index: Int) -> DiskURLCache.Reason {
        if case .nothing(let problem) = rule.match.kind {
            return .never(byRule: index, "\(rule.match)", problem: problem)
        }
        return .never(byRule: index, "\(rule.match)", problem: nil)
    }
}

/// The body of a request for rules by JSON.
private enum JSONBody {
    case object([String: Any])
    /// It is said to be JSON, or looks so, and cannot be parsed, such as one nested deeper than 512. The server may
    /// take it for what a rule names.
    case unreadable
    case other

    init(of request: DiskURLCache.Request) {
        guard let body = request.body, !body.isEmpty else {
            self = .other
            return
        }
        if let value = try? JSONSerialization.jsonObject(with: body, options: .fragmentsAllowed) {
            self = (value as? [String: Any]).map { .object($0) } ?? .other
        } else {
            let type = request.headerFields["Content-Type"]?.lowercased()
            let isNamed = type.map { $0.range(of: "json") != nil } ?? true
            let isBrace = body.first { !FieldSyntax.isWhitespace($0) && $0 != 10 && $0 != 13 } == UInt8(ascii: "{")
            self = isBrace || isNamed ? .unreadable : .other
        }
    }

    var object: [String: Any]? { if case .object(let object) = self { object } else { nil } }
}
