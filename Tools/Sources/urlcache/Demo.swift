import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

/// Makes a cache with invented entries and an event log with invented loads, to try the report with. They are the same
/// each time.
struct Demo: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Makes a cache of made-up entries.", shouldDisplay: false)

    @OptionGroup var cache: NamedDirectory

    @Option var entries = 1_000

    @Option(help: "Made-up hosts instead of the usual ones.")
    var hosts: Int?

    @Flag(help: "Without made-up loads.")
    var withoutLoads = false

    private static let types = [
        ("image/jpeg", "jpg", 90_000), ("application/json; charset=utf-8", "json", 9_000),
        ("image/webp", "webp", 40_000),
        ("text/html; charset=utf-8", "html", 24_000), ("text/css", "css", 30_000), ("font/woff2", "woff2", 45_000),
        ("application/javascript", "js", 70_000), ("video/mp4", "mp4", 500_000), ("<b>not a type</b>", "x", 2_000),
    ]
    private static let hosts =
        [
            "images.example.com", "cdn.example.com", "api.example.com", "www.example.com", "fonts.example.net",
            "video.example.org",
        ]
        + (1...24).map { "partner-\($0).example" }
    private static let folders = ["articles", "img/2026/11", "thumbs", "api/v2/items", "assets/app", "%3C/script%3E"]

    func run() throws {
        if FileManager.default.fileExists(atPath: cache.url.path) {
            throw Problem("\(cache.directory) is there already.")
        }
        let target = DiskURLCache(memoryCapacity: 0, diskCapacity: .max, directory: cache.url)
        let log = DiskURLCache.EventLog(target)
        let names = hosts.map { count in (1...max(1, count)).map { "host-\($0).example" } } ?? Self.hosts
        var random = Numbers()
        var urls: [String] = []
        var kind = Self.types[0]
        for number in 0..<entries {
            // Every eighth entry is a second variant of the one before.
            let isVariant = number % 8 == 7
            if !isVariant { kind = Self.types[min(random.next(9), random.next(9), random.next(9))] }
            let (type, suffix, size) = kind
            let folder = Self.folders[min(random.next(6), random.next(6))]
            let host = names[min(random.next(names.count), random.next(names.count), random.next(60))]
            let text =
                isVariant ? urls[number - 1] : "https://\(host)/\(folder)/item-\(number).\(suffix)?v=\(random.next(90))"
            urls.append(text)
            guard let url = URL(string: text) else { continue }
            let age = random.next(4) == 0 ? random.next(4_000_000) : random.next(90_000)
            let lifetime = [0, 60, 3_600, 86_400, 604_800, 2_592_000, 31_536_000][random.next(7)]
            var fields = ["Content-Type": type, "Date": Self.date(Date().addingTimeInterval(-Double(age)))]
            if lifetime > 0 { fields["Cache-Control"] = "max-age=\(lifetime)" }
            if number % 8 >= 6 { fields["Vary"] = "Accept-Language" }
            var request = URLRequest(url: url)
            request.setValue(isVariant ? "de" : "en", forHTTPHeaderField: "Accept-Language")
            let status = lifetime > 0 ? [200, 200, 200, 200, 200, 200, 200, 301, 404, 410][random.next(10)] : 200
            let share = Double(random.next(1_000) + 1) / 1_000
            let body = Data(repeating: UInt8(number & 255), count: Int(Double(size) * share * share * share))
            guard
                let response = HTTPURLResponse(
                    url: url, statusCode: status, httpVersion: "HTTP/1.1", headerFields: fields)
            else { continue }
            request.cacheOptions = .init(tags: number % 11 == 0 ? ["account"] : [], isPinned: number % 97 == 0)
            target.storeCachedResponse(CachedURLResponse(response: response, data: body), for: request)
        }
        target.flush()
        log.flush()
        if !withoutLoads { try addLoads(of: urls, &random) }
        show("\(entries) entries in \(cache.directory).")
    }

    /// Writes lines in the form of an event log.
    private func addLoads(of urls: [String], _ random: inout Numbers) throws {
        guard !urls.isEmpty else { return }
        let file = ProgramLog.file(in: cache.url)
        var lines = FileManager.default.contents(atPath: file.path) ?? Data()
        let count = min(6_000, urls.count * 12)
        let outcomes = ["hit", "hit", "hit", "hit", "hit", "hit", "hit", "staleHit", "revalidated", "miss"]
        for number in 0..<count {
            let progress = Double(number) / Double(count)
            // Over two days, with less traffic at night, while the cache fills and misses become rarer.
            let at = Date().timeIntervalSince1970 - 172_800 * (1 - progress + 0.06 * sin(progress * 4 * .pi))
            let isCold = Double(random.next(100)) / 100 > 0.45 + progress
            let outcome = isCold ? "miss" : outcomes[random.next(outcomes.count)]
            let detail: [String: Any] =
                switch outcome {
                case "miss":
                    [
                        "_0": [
                            reason("not-in-cache", "not in the cache"),
                            reason("no-cache", "the stored response says no-cache"),
                            reason("stale", "expired, so the origin has to be asked"),
                        ][random.next(3)]
                    ]
                case "staleHit":
                    ["_0": "disk", "because": reason("stale-while-revalidate", "allowed by stale-while-revalidate")]
                default: ["_0": "disk"]
                }
            let seconds = outcome == "hit" ? 0.0004 : 0.04 + Double(random.next(200)) / 1_000
            var load: [String: Any] = [
                "url": urls[min(random.next(urls.count), random.next(urls.count))], "method": "GET",
                "outcome": [outcome: detail], "status": 200, "bytes": random.next(60_000), "duration": seconds,
                "startedAt": at - seconds, "isCollapsed": false, "cacheStatus": "",
            ]
            if outcome == "miss" { load["isStored"] = true }
            if outcome == "miss", random.next(5) == 0 {
                load["isStored"] = false
                load["notStoredReason"] =
                    [
                        reason("no-store", "the response says no-store"),
                        reason("not-reusable", "it has no lifetime, so it could never be used from the cache"),
                    ][random.next(2)]
            }
            let line: [String: Any] = ["at": at, "event": ["load": ["_0": load]]]
            lines.append(try JSONSerialization.data(withJSONObject: line, options: .sortedKeys))
            lines.append(UInt8(ascii: "\n"))
        }
        try write(lines, toFile: file.path)
    }

    /// A reason in the form of the event log.
    private func reason(_ code: String, _ words: String) -> [String: String] { ["code": code, "words": words] }

    private static func date(_ date: Date) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: date)
    }

    /// A linear congruential generator with the constants of Numerical Recipes.
    private struct Numbers {
        private var state: UInt32 = 1

        mutating func next(_ bound: Int) -> Int {
            state = state &* 1_664_525 &+ 1_013_904_223
            return Int(state >> 8) % bound
        }
    }
}
