import DiskURLCache
import Foundation

/// The rules of an app as a file has them, for `--rules`.
struct RulesFile: Decodable {
    private var url: String?
    private var path: String?
    private var host: String?
    private var contentType: String?
    private var storage: DiskURLCache.Options.Storage?
    private var lifetime: TimeInterval?
    private var lifetimeWhenMissing: TimeInterval?
    private var staleWhileRevalidate: TimeInterval?
    private var staleIfError: TimeInterval?
    private var fallback: DiskURLCache.Options.Fallback?
    private var minimumInterval: TimeInterval?
    private var errorLifetime: TimeInterval?
    private var invalidatesURL: Bool?
    private var minimumDiskLifetime: TimeInterval?
    private var tags: Set<String>?
    private var isPinned: Bool?

    static func read(_ path: String) throws -> [DiskURLCache.Rule] {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw Problem("\(path) cannot be read. Name a file with rules in JSON.")
        }
        let names = try? JSONSerialization.jsonObject(with: data) as? [[String: Any]]
        for (index, rule) in (names ?? []).enumerated() {
            let unknown = Set(rule.keys).subtracting(Self.names).sorted()
            guard unknown.isEmpty else {
                throw Problem("\(path), rule \(index): there is no \"\(unknown[0])\". See urlcache help why.")
            }
        }
        do {
            return try JSONDecoder().decode([RulesFile].self, from: data).map { try $0.rule }
        } catch let error as DecodingError {
            throw Problem("\(path) is no list of rules in JSON: \(Self.words(for: error)). See urlcache help why.")
        }
    }

    /// A cache with these settings, which is asked and given nothing to store.
    static func cache(_ settings: DiskURLCache.Configuration) throws -> DiskURLCache {
        let cache = DiskURLCache(configuration: settings)
        if let error = cache.openingError { throw Problem("\(error)") }
        return cache
    }

    private static let names: Set<String> = [
        "url", "path", "host", "contentType", "storage", "lifetime", "lifetimeWhenMissing", "staleWhileRevalidate",
        "staleIfError", "fallback", "minimumInterval", "errorLifetime", "invalidatesURL", "minimumDiskLifetime", "tags",
        "isPinned",
    ]

    private static func words(for error: DecodingError) -> String {
        switch error {
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
            let place = context.codingPath.map { $0.intValue.map { "rule \($0)" } ?? $0.stringValue }
            let words = context.debugDescription
            return (place + [words.hasSuffix(".") ? String(words.dropLast()) : words]).joined(separator: ", ")
        case .keyNotFound(let key, _): return "\(key.stringValue) is missing"
        @unknown default: return "\(error)"
        }
    }

    private var rule: DiskURLCache.Rule {
        get throws {
            let match: DiskURLCache.Rule.Match
            switch (url, path, host, contentType) {
            case (nil, nil, nil, nil): match = .all
            case (let url?, nil, nil, nil): match = .url(url)
            case (nil, let path?, let host, nil): match = .path(path, host: host)
            case (nil, nil, let host?, nil): match = .host(host)
            case (nil, nil, nil, let type?): match = .contentType(type)
            default: throw Problem("A rule has one of url, path (with or without a host), host and contentType.")
            }
            let life = lifetime.map { DiskURLCache.Options.Lifetime.always(.seconds($0)) }
            return DiskURLCache.Rule(
                for: match, storage: storage, lifetime: life ?? lifetimeWhenMissing.map { .whenMissing(.seconds($0)) },
                staleWhileRevalidate: staleWhileRevalidate.map { .seconds($0) },
                staleIfError: staleIfError.map { .seconds($0) }, fallback: fallback,
                minimumInterval: minimumInterval.map { .seconds($0) },
                errorLifetime: errorLifetime.map { .seconds($0) }, invalidatesURL: invalidatesURL,
                minimumDiskLifetime: minimumDiskLifetime.map { .seconds($0) }, tags: tags ?? [], isPinned: isPinned)
        }
    }
}
