import DiskURLCache
import Foundation
import Logging
import Metrics
import NIOConcurrencyHelpers
import ServiceLifecycle

/// How a cache is doing, for a metrics system (swift-metrics) and a log (swift-log).
///
/// ```swift
/// let health = CacheMetrics(client.cache, name: "upstream", logger: logger)
/// let group = ServiceGroup(services: [health, client, server], logger: logger)
/// ```
///
/// Services end in the opposite order of their list: so the last loads, and problems when the client ends, are counted
/// and logged.
///
/// | Metric | Kind | Counts |
/// |---|---|---|
/// | `http_cache_hits` | counter, `layer`: `memory`, `disk` | answers from there |
/// | `http_cache_misses` | counter | answers from the origin |
/// | `http_cache_loads` | counter, `outcome`: `hit`, `stale`, `revalidated`, `miss`, `bypass`, `failed` | loads that ended |
/// | `http_cache_load_duration` | timer, `outcome` | how long they took: a histogram if the metrics system makes one of timers |
/// | `http_cache_revalidations` | counter | stored answers that the origin confirmed with a 304 |
/// | `http_cache_stores` | counter | answers stored |
/// | `http_cache_not_stored` | counter | answers of the origin that were not stored; the log has the reasons on level `debug` |
/// | `http_cache_evictions` | counter | entries that had to go from disk |
/// | `http_cache_saved_bytes` | counter | bytes of bodies that did not cross the network |
/// | `http_cache_memory_bytes`, `http_cache_disk_bytes` | gauge | what the layers take |
/// | `http_cache_problems` | counter | what the log tells on level `warning` |
///
/// Each has the dimension `cache`, with the name.
///
/// Most counters are those of `cache.statistics` and miss nothing. The counters of loads, `http_cache_not_stored`,
/// `http_cache_problems` and the log come from `cache.events()` from `run()` on, which drops the oldest when a thousand
/// wait: under a load that the machine can hardly carry they may count too few. `cache.openingError` is counted and
/// logged, whenever it came.
public final class CacheMetrics: Service {
    private struct Counters: Sendable {
        let memoryHits: Counter
        let diskHits: Counter
        let misses: Counter
        let revalidations: Counter
        let stores: Counter
        let notStored: Counter
        let evictions: Counter
        let savedBytes: Counter
        let problems: Counter
    }

    private let cache: DiskURLCache
    private let logger: Logger?
    private let counters: Counters
    /// By outcome.
    private let loads: [String: (count: Counter, duration: Metrics.Timer)]
    private let memoryBytes: Gauge
    private let diskBytes: Gauge
    /// The counts that the metrics system has.
    private let reported = NIOLockedValueBox(DiskURLCache.Statistics?.none)

    /// - Parameters:
    ///   - cache: the cache that is told of.
    ///   - name: tells caches of one process apart.
    ///   - factory: nil for the one that the process has.
    ///   - logger: gets what needs somebody's eyes on level `warning`, and the rest on level `debug`; nil for no log.
    public init(
        _ cache: DiskURLCache, name: String = "default", factory: (any MetricsFactory)? = nil, logger: Logger? = nil
    ) {
        let factory = factory ?? MetricsSystem.factory
        func counter(_ label: String, _ dimensions: (String, String)...) -> Counter {
            Counter(label: "http_cache_\(label)", dimensions: [("cache", name)] + dimensions, factory: factory)
        }
        func gauge(_ label: String) -> Gauge {
            Gauge(label: "http_cache_\(label)", dimensions: [("cache", name)], factory: factory)
        }
        self.cache = cache
        var named = logger
        named?[metadataKey: "cache"] = "\(name)"
        self.logger = named
        counters = Counters(
            memoryHits: counter("hits", ("layer", "memory")), diskHits: counter("hits", ("layer", "disk")),
            misses: counter("misses"), revalidations: counter("revalidations"), stores: counter("stores"),
            notStored: counter("not_stored"), evictions: counter("evictions"), savedBytes: counter("saved_bytes"),
            problems: counter("problems"))
        let outcomes = ["hit", "stale", "revalidated", "miss", "bypass", "failed"]
        loads = Dictionary(
            uniqueKeysWithValues: outcomes.map { outcome in
                let timer = Metrics.Timer(
                    label: "http_cache_load_duration", dimensions: [("cache", name), ("outcome", outcome)],
                    factory: factory)
                return (outcome, (counter("loads", ("outcome", outcome)), timer))
            })
        (memoryBytes, diskBytes) = (gauge("memory_bytes"), gauge("disk_bytes"))
    }

    /// Counts and logs until its service group ends, or the task is cancelled. The counters are brought up to date
    /// every 10 seconds.
    public func run() async {
        await cancelWhenGracefulShutdown { await self.run(updatingEvery: 10) }
    }

    /// Counts and logs until the task is cancelled.
    /// - Parameter interval: after how many seconds the counters are brought up to date; `.infinity` if `update()` does
    ///   that.
    public func run(updatingEvery interval: TimeInterval) async {
        let events = cache.events()
        let opening = await openingError()
        if let opening { report("\(opening)") }
        update()
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await event in events { self.record(event, reported: opening) } }
            group.addTask {
                while !Task.isCancelled {
                    try? await Task.sleep(nanoseconds: UInt64(min(max(0.001, interval), 1e9) * 1e9))
                    self.update()
                }
            }
        }
    }

    private func openingError() async -> DiskURLCache.Error? {
        // Waits for the folder, so not on a thread that other tasks need.
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { [cache] in continuation.resume(returning: cache.openingError) }
        }
    }

    /// Brings the counters up to date now: for an endpoint that is read more often than `run(updatingEvery:)` does it.
    public func update() {
        reported.withLockedValue { reported in
            let (now, before) = (cache.statistics, reported)
            func add(_ counter: Counter, _ count: KeyPath<DiskURLCache.Statistics, Int>) {
                counter.increment(by: now[keyPath: count] - (before?[keyPath: count] ?? 0))
            }
            add(counters.memoryHits, \.memoryHits)
            add(counters.diskHits, \.diskHits)
            add(counters.misses, \.misses)
            add(counters.revalidations, \.revalidations)
            add(counters.stores, \.stores)
            add(counters.evictions, \.evictions)
            add(counters.savedBytes, \.bytesSaved)
            reported = now
        }
        memoryBytes.record(cache.currentMemoryUsage)
        diskBytes.record(cache.currentDiskUsage)
    }

    /// - Parameter reported: a problem that may come as an event, too.
    func record(_ event: DiskURLCache.Event, reported: DiskURLCache.Error? = nil) {
        switch event {
        case .load(let load):
            if let (count, duration) = loads[load.outcome.name] {
                count.increment()
                duration.recordSeconds(load.duration)
            }
            guard let reason = load.notStoredReason else { return }
            counters.notStored.increment()
            logger?.debug("not stored: \(reason)")
        case .notStored(_, let reason):
            // Every other reason is in the report of the load.
            if reason.code == "disk-failed" { report("not stored: \(reason)") }
        case .evicted(let entries, let bytes):
            logger?.debug("evicted from disk", metadata: ["entries": "\(entries)", "bytes": "\(bytes)"])
        case .problem(let error):
            if error != reported { report("\(error)") }
        case .stored:
            break
        }
    }

    private func report(_ problem: String) {
        counters.problems.increment()
        logger?.warning("\(problem)")
    }
}

extension DiskURLCache.Report.Outcome {
    fileprivate var name: String {
        switch self {
        case .hit: "hit"
        case .staleHit: "stale"
        case .revalidated: "revalidated"
        case .miss: "miss"
        case .bypass: "bypass"
        case .failed, .notAllowed: "failed"
        }
    }
}
