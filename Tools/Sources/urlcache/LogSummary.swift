import DiskURLCache
import Foundation

typealias LogEntry = (date: Date, event: DiskURLCache.Event)

/// What an event log says about savings and misses.
struct LogSummary: Encodable {
    /// The loads of a host, or of all hosts, by spans of time. Each column has a number for each span with loads.
    struct Series: Encodable {
        /// Nil for all hosts.
        let host: String?
        /// The numbers of the spans.
        var at: [Int] = []
        /// Answered without a request, stale responses included.
        var hits: [Int] = []
        var revalidated: [Int] = []
        /// From the network, past the cache, or failed.
        var others: [Int] = []
        /// The length of the bodies that did not cross the network.
        var bytes: [Int] = []
        /// See `secondsSaved`; in milliseconds.
        var saved: [Int] = []
    }

    struct Miss: Encodable {
        let url: String
        let host: String
        var count = 0
        var seconds = 0.0
        var bytes = 0
        /// Why it is not in the cache, if the log says that it was not stored; otherwise the text of the most frequent
        /// reason of its misses.
        var reason = ""
    }

    struct Refusal: Encodable {
        /// The text of the reason.
        let reason: String
        let host: String
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
    /// An estimate of the waiting that hits saved. If each had taken the mean time of an answer of its host from the
    /// network, something would have been on its way for so much longer: loads at the same time count once.
    var secondsSaved = 0.0
    /// Whether there is an answer from the network to compare with.
    var hasEstimate = false
    var evictions = 0
    var from = 0
    /// The length of a span in seconds.
    var width = 1
    /// All loads, and those of the busiest hosts.
    var series: [Series] = []
    var topMisses: [Miss] = []
    var refusals: [Refusal] = []

    private static let spans = 60
    private static let hosts = 60

    /// Nil without a log.
    init?(_ entries: [LogEntry]) {
        guard !entries.isEmpty else { return nil }
        let loads = entries.compactMap { entry in
            if case .load(let report) = entry.event { Load(report, end: entry.date) } else { nil }
        }
        self.loads = loads.count
        if let first = loads.map(\.end).min(), let last = loads.map(\.end).max() {
            let least = (last - first) / Double(Self.spans - 1)
            let widths = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400]
            width = widths.first { Double($0) >= least } ?? Int(min(least, 1e9) / 86_400 + 1) * 86_400
            from = Int(first) / width * width
        }
        for load in loads {
            switch load.kind {
            case .hit: hits += 1
            case .revalidated: revalidated += 1
            case .network: misses += 1
            case .other: break
            }
            bytesSaved += load.bytesSaved
        }
        hasEstimate = misses > 0
        let estimate = MeanTimes(loads)
        let byHost = Dictionary(grouping: loads, by: \.host).sorted {
            ($0.value.count, $1.key) > ($1.value.count, $0.key)
        }
        series = [series(of: loads, host: nil, estimate)]
        series += byHost.prefix(Self.hosts).map { series(of: $0.value, host: $0.key, estimate) }
        secondsSaved = Double(series[0].saved.reduce(0, +)) / 1_000
        for entry in entries {
            if case .evicted(let count, _) = entry.event { evictions += count }
        }
        let events = entries.map(\.event)
        topMisses = Self.topMisses(loads.map(\.report), Self.reasonsAgainstStoring(events))
        refusals = Self.refusals(events)
    }

    /// A load, with its times in seconds since 1970.
    private struct Load {
        enum Kind { case hit, revalidated, network, other }

        let report: DiskURLCache.Report
        let kind: Kind
        let host: String
        let start: Double
        let end: Double

        init(_ report: DiskURLCache.Report, end: Date) {
            self.report = report
            self.end = end.timeIntervalSince1970
            start = self.end - max(0, report.duration)
            host = ReportData.host(of: report.url?.absoluteString)
            kind =
                switch report.outcome {
                case .hit, .staleHit: .hit
                case .revalidated: .revalidated
                case .expired, .miss: .network
                case .bypass, .failed, .notAllowed: .other
                @unknown default: .other
                }
        }

        var bytesSaved: Int { kind == .hit || kind == .revalidated ? report.bytes : 0 }
    }

    /// The mean time of an answer from the network, by host, and for hosts without one that of all.
    private struct MeanTimes {
        private var byHost: [String: (seconds: Double, count: Int)] = [:]
        private var all = (seconds: 0.0, count: 0)

        init(_ loads: [Load]) {
            for load in loads where load.kind == .network {
                byHost[load.host, default: (0, 0)].seconds += load.end - load.start
                byHost[load.host, default: (0, 0)].count += 1
                all = (all.seconds + load.end - load.start, all.count + 1)
            }
        }

        func time(of host: String) -> Double {
            let times = byHost[host] ?? all
            return times.count == 0 ? 0 : times.seconds / Double(times.count)
        }
    }

    private func series(of loads: [Load], host: String?, _ estimate: MeanTimes) -> Series {
        struct Span {
            var hits = 0
            var revalidated = 0
            var others = 0
            var bytes = 0
        }
        var spans: [Int: Span] = [:]
        for load in loads {
            let index = (Int(load.end) - from) / width
            switch load.kind {
            case .hit: spans[index, default: Span()].hits += 1
            case .revalidated: spans[index, default: Span()].revalidated += 1
            case .network, .other: spans[index, default: Span()].others += 1
            }
            spans[index, default: Span()].bytes += load.bytesSaved
        }
        let places = spans.keys.sorted()
        let saved = secondsSaved(loads, places, estimate)
        var series = Series(host: host)
        for (place, saved) in zip(places, saved) {
            guard let span = spans[place] else { continue }
            series.at.append(place)
            series.hits.append(span.hits)
            series.revalidated.append(span.revalidated)
            series.others.append(span.others)
            series.bytes.append(span.bytes)
            series.saved.append(Int((saved * 1_000).rounded()))
        }
        return series
    }

    /// For each span, by how much longer something would have been on its way without the hits that begin in it.
    private func secondsSaved(_ loads: [Load], _ places: [Int], _ estimate: MeanTimes) -> [Double] {
        let real = loads.map { ($0.start, $0.end) }
        let without = loads.map { load in
            load.kind == .hit
                ? (load.start, max(load.end, load.start + estimate.time(of: load.host))) : (load.start, load.end)
        }
        // What reaches into the time between two spans belongs to the one before.
        let ends = places.dropFirst().map { Double(from + $0 * width) } + [.infinity]
        return zip(Self.busy(without, until: ends), Self.busy(real, until: ends)).map { max(0, $0 - $1) }
    }

    /// The seconds in which at least one of the intervals is in progress, by spans that end at these times.
    private static func busy(_ intervals: [(start: Double, end: Double)], until ends: [Double]) -> [Double] {
        var sums = [Double](repeating: 0, count: ends.count)
        var reached = -Double.infinity
        var span = 0
        for interval in intervals.sorted(by: { $0.start < $1.start }) {
            var start = max(interval.start, reached)
            reached = max(reached, interval.end)
            while start < interval.end, span < ends.count {
                let end = min(interval.end, ends[span])
                if end > start { sums[span] += end - start }
                start = max(start, end)
                if start < interval.end { span += 1 }
            }
        }
        return sums
    }

    /// The most frequent misses of all, and of each host.
    private static func topMisses(
        _ loads: [DiskURLCache.Report], _ refused: [String: [DiskURLCache.Reason: Int]]
    ) -> [Miss] {
        var misses: [String: Miss] = [:]
        var reasons: [String: [DiskURLCache.Reason: Int]] = [:]
        for load in loads {
            let reason: DiskURLCache.Reason
            switch load.outcome {
            case .miss(let why), .expired(let why): reason = why
            default: continue
            }
            let url = shortened(load.url)
            var miss = misses[url] ?? Miss(url: url, host: ReportData.host(of: load.url?.absoluteString))
            miss.count += 1
            miss.seconds += load.duration
            miss.bytes += load.bytes
            misses[url] = miss
            reasons[url, default: [:]][reason, default: 0] += 1
        }
        func most(_ reasons: [DiskURLCache.Reason: Int]?) -> String? {
            reasons?.max { ($0.value, $1.key.description) < ($1.value, $0.key.description) }?.key.description
        }
        let sorted = misses.values.sorted { ($0.count, $0.seconds, $1.url) > ($1.count, $1.seconds, $0.url) }
        var places: [String: Int] = [:]
        return sorted.enumerated().compactMap { place, miss in
            places[miss.host, default: 0] += 1
            guard place < 12 || places[miss.host, default: 0] <= 4 else { return nil }
            var miss = miss
            miss.reason = most(refused[miss.url]).map { "not stored: \($0)" } ?? most(reasons[miss.url]) ?? ""
            return miss
        }.prefix(250).map { $0 }
    }

    /// For each URL, why its responses were not stored, and how often. A load and an event may report the same
    /// response; then the load counts.
    private static func reasonsAgainstStoring(_ events: [DiskURLCache.Event]) -> [String: [DiskURLCache.Reason: Int]] {
        var byLoads: [String: [DiskURLCache.Reason: Int]] = [:]
        var byEvents: [String: [DiskURLCache.Reason: Int]] = [:]
        for event in events {
            switch event {
            case .load(let load):
                guard let reason = load.notStoredReason else { continue }
                byLoads[shortened(load.url), default: [:]][reason, default: 0] += 1
            case .notStored(let url, let reason): byEvents[shortened(url), default: [:]][reason, default: 0] += 1
            default: break
            }
        }
        return byLoads.merging(byEvents) { loads, _ in loads }
    }

    private static func refusals(_ events: [DiskURLCache.Event]) -> [Refusal] {
        var refusals: [[String]: Refusal] = [:]
        func add(_ reason: DiskURLCache.Reason, of url: URL?) {
            // Without the sizes, so that there is one row for all.
            let words = reason == .tooLarge ? "its body is larger than an entry may be" : reason.description
            let host = ReportData.host(of: url?.absoluteString)
            let new = Refusal(reason: words, host: host, url: shortened(url))
            refusals[[words, host], default: new].count += 1
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
        let sorted = refusals.values.sorted { ($0.count, $1.reason, $1.host) > ($1.count, $0.reason, $0.host) }
        return sorted.prefix(250).map { $0 }
    }

    private static func shortened(_ url: URL?) -> String {
        let url = url?.absoluteString ?? "an unknown URL"
        return url.count > 160 ? url.prefix(160) + "…" : url
    }
}
