import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A treatment for the requests or responses that match. See ``CacheTreatment`` for what wins over what.
///
/// ```swift
/// try configuration.setRules([
///     CacheRule(.contentType("image/*"), CacheTreatment(lifetime: .whenMissing(7 * 24 * 3600))),
///     CacheRule(.url("https://api.example.com/me*"), CacheTreatment(storage: .memoryOnly)),
/// ])
/// ```
public struct CacheRule: Sendable {
    /// What a rule applies to.
    public struct Match: Sendable {
        enum Kind: Sendable {
            case all
            case url(String)
            case host(String)
            case contentType(String)
            case request(@Sendable (URLRequest) -> Bool)
        }

        let kind: Kind

        /// Every request.
        public static let all = Match(kind: .all)

        /// The whole URL without its fragment; `*` stands for any characters, none included.
        public static func url(_ pattern: String) -> Match { Match(kind: .url(pattern)) }

        /// The host and its subdomains.
        public static func host(_ name: String) -> Match { Match(kind: .host(name.lowercased())) }

        /// The response's media type without parameters; `*` as in `image/*`. Such a rule cannot change the key, and does
        /// nothing before a response is known.
        public static func contentType(_ pattern: String) -> Match {
            Match(kind: .contentType(pattern.lowercased()))
        }

        /// Called on any thread, for each lookup and each store.
        public static func request(_ predicate: @escaping @Sendable (URLRequest) -> Bool) -> Match {
            Match(kind: .request(predicate))
        }
    }

    let match: Match
    let treatment: CacheTreatment

    /// - Parameters:
    ///   - match: what the rule applies to.
    ///   - treatment: how the responses to that are kept.
    public init(_ match: Match, _ treatment: CacheTreatment) {
        self.match = match
        self.treatment = treatment
    }

    func matches(_ request: URLRequest, contentType: String?) -> Bool {
        switch match.kind {
        case .all: return true
        case .request(let predicate): return predicate(request)
        case .url(let pattern):
            let text = request.url?.absoluteString.prefix { $0 != "#" } ?? ""
            return Glob.matches(pattern, text)
        case .host(let name):
            let host = request.url?.host?.lowercased() ?? ""
            return host == name || host.hasSuffix("." + name)
        case .contentType(let pattern):
            guard let type = contentType?.prefix(while: { $0 != ";" }) else { return false }
            return Glob.matches(pattern, type.lowercased().filter { $0 != " " })
        }
    }
}

/// Text patterns in which `*` stands for any characters.
enum Glob {
    static func matches(_ pattern: some StringProtocol, _ text: some StringProtocol) -> Bool {
        let pattern = Array(pattern.utf8)
        let text = Array(text.utf8)
        var (p, t) = (0, 0)
        // Where to go on after a mismatch: one more byte for the last star. Linear but for that retry.
        var retry: (pattern: Int, text: Int)?
        while t < text.count {
            if p < pattern.count, pattern[p] == UInt8(ascii: "*") {
                retry = (p + 1, t)
                p += 1
            } else if p < pattern.count, pattern[p] == text[t] {
                p += 1
                t += 1
            } else if let last = retry {
                retry = (last.pattern, last.text + 1)
                (p, t) = (last.pattern, last.text + 1)
            } else {
                return false
            }
        }
        return pattern[p...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
