import DiskURLCache
import Foundation

/// What an event log says was won, and what was missed.
struct LogSummary: Encodable {
    /// Loads of a span of time.
    struct Span: Encodable {
        let at: Int
        var hits = 0
        var revalidated = 0
        /// From the network, past the cache, or failed.
        var others = 0
        var bytesSaved = 0
    }

    struct Miss: Encodable {
        let url: String
        var count = 0
        var seconds = 0.0
        var bytes = 0
        /// The most frequent one.
        var reason = ""
    }

    struct Refusal: Encodable {
        let reason: String
        var count = 0
        /// One of the URLs.
        var url: String
    }

    var loads = 0
    /// Answers without a request, stale ones included.
    var hits = 0
    var revalidated = 0
    var misses = 0
    var bytesSaved = 0
    /// An estimate: the mean time of a miss for each hit, less what the hits took.
    var secondsSaved = 0.0
    var evictions = 0
    var from = 0
    var to = 0
    /// Seconds of a span.
    var width = 1
    var spans: [Span] = []
    var topMisses: [Miss] = []
    var refusals: [Refusal] = []

    /// Nil without a log.
    init?(_ entries: [DiskURLCache.EventLog.Entry]) {
        guard !entries.isEmpty else { return nil }
        let loads = entries.filter { $0.event == "load" }
        self.loads = loads.count
        if let first = loads.map(\.at).min(), let last = loads.map(\.at).max() {
            (from, to) = (Int(first), Int(last))
            width = max(1, Int(((last - first) / 48).rounded(.up)))
        }
        var spans: [Int: Span] = [:]
        var missTime = 0.0
        var hitTime = 0.0
        for load in loads {
            let index = (Int(load.at) - from) / width
            var span = spans[index] ?? Span(at: from + index * width)
            let bytes = load.bytes ?? 0
            let seconds = (load.milliseconds ?? 0) / 1_000
            switch load.outcome {
            case "hit", "stale":
                hits += 1
                hitTime += seconds
                bytesSaved += bytes
                span.hits += 1
                span.bytesSaved += bytes
            case "revalidated":
                revalidated += 1
                bytesSaved += bytes
                span.revalidated += 1
                span.bytesSaved += bytes
            case "miss":
                misses += 1
                missTime += seconds
                span.others += 1
            default:
                span.others += 1
            }
            spans[index] = span
        }
        self.spans = spans.values.sorted { $0.at < $1.at }
        secondsSaved = misses == 0 ? 0 : max(0, missTime / Double(misses) * Double(hits) - hitTime).rounded()
        for entry in entries where entry.event == "evicted" {
            evictions += entry.reason.flatMap { Int($0.prefix { $0.isNumber }) } ?? 0
        }
        topMisses = Self.topMisses(loads)
        refusals = Self.refusals(entries)
    }

    private static func topMisses(_ loads: [DiskURLCache.EventLog.Entry]) -> [Miss] {
        var misses: [String: Miss] = [:]
        var reasons: [String: [String: Int]] = [:]
        for load in loads where load.outcome == "miss" {
            let url = shortened(load.url)
            var miss = misses[url] ?? Miss(url: url)
            miss.count += 1
            miss.seconds += (load.milliseconds ?? 0) / 1_000
            miss.bytes += load.bytes ?? 0
            misses[url] = miss
            reasons[url, default: [:]][load.reason ?? "", default: 0] += 1
        }
        return misses.values.sorted { ($0.count, $0.seconds, $1.url) > ($1.count, $1.seconds, $0.url) }.prefix(12).map {
            var miss = $0
            miss.reason = reasons[miss.url]?.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key ?? ""
            return miss
        }
    }

    private static func refusals(_ entries: [DiskURLCache.EventLog.Entry]) -> [Refusal] {
        var refusals: [String: Refusal] = [:]
        // Of one answer both a load and an event may tell: the load counts.
        let told = Set(entries.filter { $0.notStored != nil }.compactMap(\.url))
        for entry in entries {
            let isEvent = entry.event == "notStored" && !(entry.url.map(told.contains) ?? false)
            guard let reason = entry.notStored ?? (isEvent ? entry.reason : nil) else { continue }
            var refusal = refusals[reason] ?? Refusal(reason: reason, url: shortened(entry.url))
            refusal.count += 1
            refusals[reason] = refusal
        }
        return refusals.values.sorted { ($0.count, $1.reason) > ($1.count, $0.reason) }.prefix(12).map { $0 }
    }

    private static func shortened(_ url: String?) -> String {
        let url = url ?? "an unknown URL"
        return url.count > 160 ? url.prefix(160) + "…" : url
    }
}
