import DiskURLCache
import Foundation

typealias LogEntry = (date: Date, event: DiskURLCache.Event)

/// What an event log says about savings and misses.
struct LogSummary: Encodable {
    /// The loads in a span of time.
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
        /// The text of the most frequent reason.
        var reason = ""
    }

    struct Refusal: Encodable {
        /// The text of the reason.
        let reason: String
        var count = 0
        /// One of the URLs.
        var url: String
    }

    var loads = 0
    /// Responses without a request, stale responses included.
    var hits = 0
    var revalidated = 0
    var misses = 0
    var bytesSaved = 0
    /// An estimate: the mean time of a miss, times the number of hits, minus the time that the hits took.
    var secondsSaved = 0.0
    var evictions = 0
    var from = 0
    var to = 0
    /// The length of a span in seconds.
    var width = 1
    var spans: [Span] = []
    var topMisses: [Miss] = []
    var refusals: [Refusal] = []

    /// Nil without a log.
    init?(_ entries: [LogEntry]) {
        guard !entries.isEmpty else { return nil }
        let loads = entries.compactMap { entry -> (at: Int, report: DiskURLCache.Report)? in
            if case .load(let report) = entry.event { (Int(entry.date.timeIntervalSince1970), report) } else { nil }
        }
        self.loads = loads.count
        if let first = loads.map(\.at).min(), let last = loads.map(\.at).max() {
            (from, to) = (first, last)
            width = max(1, Int((Double(last - first) / 48).rounded(.up)))
        }
        var spans: [Int: Span] = [:]
        var missTime = 0.0
        var hitTime = 0.0
        for (at, load) in loads {
            let index = (at - from) / width
            var span = spans[index] ?? Span(at: from + index * width)
            switch load.outcome {
            case .hit, .staleHit:
                hits += 1
                hitTime += load.duration
                bytesSaved += load.bytes
                span.hits += 1
                span.bytesSaved += load.bytes
            case .revalidated:
                revalidated += 1
                bytesSaved += load.bytes
                span.revalidated += 1
                span.bytesSaved += load.bytes
            case .expired, .miss:
                misses += 1
                missTime += load.duration
                span.others += 1
            case .bypass, .failed, .notAllowed:
                span.others += 1
            }
            spans[index] = span
        }
        self.spans = spans.values.sorted { $0.at < $1.at }
        secondsSaved = misses == 0 ? 0 : max(0, missTime / Double(misses) * Double(hits) - hitTime).rounded()
        for entry in entries {
            if case .evicted(let count, _) = entry.event { evictions += count }
        }
        topMisses = Self.topMisses(loads.map(\.report))
        refusals = Self.refusals(entries.map(\.event))
    }

    private static func topMisses(_ loads: [DiskURLCache.Report]) -> [Miss] {
        var misses: [String: Miss] = [:]
        var reasons: [String: [DiskURLCache.Reason: Int]] = [:]
        for load in loads {
            let reason: DiskURLCache.Reason
            switch load.outcome {
            case .miss(let why), .expired(let why): reason = why
            default: continue
            }
            let url = shortened(load.url)
            var miss = misses[url] ?? Miss(url: url)
            miss.count += 1
            miss.seconds += load.duration
            miss.bytes += load.bytes
            misses[url] = miss
            reasons[url, default: [:]][reason, default: 0] += 1
        }
        return misses.values.sorted { ($0.count, $0.seconds, $1.url) > ($1.count, $1.seconds, $0.url) }.prefix(12).map {
            var miss = $0
            let most = reasons[miss.url]?.max { ($0.value, $1.key.description) < ($1.value, $0.key.description) }
            miss.reason = most?.key.description ?? ""
            return miss
        }
    }

    private static func refusals(_ events: [DiskURLCache.Event]) -> [Refusal] {
        var refusals: [String: Refusal] = [:]
        func add(_ reason: DiskURLCache.Reason, of url: URL?) {
            // Without the sizes, so that there is one row for all.
            let words = reason == .tooLarge ? "its body is larger than an entry may be" : reason.description
            refusals[words, default: Refusal(reason: words, url: shortened(url))].count += 1
        }
        // A load and an event may report the same response; then the load counts.
        var told: Set<URL> = []
        for case .load(let load) in events {
            guard let reason = load.notStoredReason else { continue }
            add(reason, of: load.url)
            if let url = load.url { told.insert(url) }
        }
        for case .notStored(let url, let reason) in events where !(url.map(told.contains) ?? false) {
            add(reason, of: url)
        }
        return refusals.values.sorted { ($0.count, $1.reason) > ($1.count, $0.reason) }.prefix(12).map { $0 }
    }

    private static func shortened(_ url: URL?) -> String {
        let url = url?.absoluteString ?? "an unknown URL"
        return url.count > 160 ? url.prefix(160) + "…" : url
    }
}
