import DiskURLCache
import Foundation
import Logging
import Metrics
import NIOConcurrencyHelpers
import ServiceLifecycle

/// Reports what a cache does to a metrics system (swift-metrics) and a log (swift-log).
///
/// ```swift
/// let health = CacheMetrics(client.cache, name: "upstream", logger: logger)
/// let group = ServiceGroup(services: [health, client, server], logger: logger)
/// ```
///
/// A service group shuts its services down in reverse order, last one first. In the order above, the last loads are
/// still counted and logged, and so are problems while the client shuts down.
///
/// | Metric | Kind | Counts |
/// |---|---|---|
/// | `http_cache_hits` | counter, `layer`: `memory`, `disk` or the storage's name (`redis`) | answers from this layer |
/// | `http_cache_misses` | counter | answers from the origin |
/// | `http_cache_loads` | counter, `outcome`: `hit`, `stale`, `revalidated`, `expired`, `miss`, `bypass`, `failed` | loads that ended |
/// | `http_cache_load_duration` | timer, `outcome` | the duration of loads; a histogram if the metrics system makes
/// histograms of timers |
/// | `http_cache_revalidations` | counter | stored answers that the origin confirmed with a 304 |
/// | `http_cache_stores` | counter | answers stored |
/// | `http_cache_not_stored` | counter | answers of the origin that were not stored; the log has the reasons on level `debug` |
/// | `http_cache_evictions` | counter | entries that were evicted from disk |
/// | `http_cache_saved_bytes` | counter | bytes of bodies that did not cross the network |
/// | `http_cache_memory_bytes`, `http_cache_disk_bytes` (`http_cache_redis_bytes`) | gauge | the size of the layers |
/// | `http_cache_problems` | counter | problems, which the log has on level `warning` |
///
/// Each metric has the dimension `cache`, whose value is the name.
///
/// Most counters are taken from `cache.statistics`, which is complete. The counters of loads, `http_cache_not_stored`,
/// `http_cache_problems` and the log are made from `cache.events()`, beginning with `run()`. If a thousand events are
/// waiting, the oldest are dropped, so that on an overloaded machine these counters may be too low.
/// `cache.openingError` is counted and logged in any case.
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
    /// The counts that were reported to the metrics system.
    private let reported = NIOLockedValueBox(DiskURLCache.Statistics?.none)

    /// - Parameters:
    ///   - cache: the cache to report on.
    ///   - name: distinguishes the caches of a process.
    ///   - factory: nil means the factory of the process.
    ///   - logger: gets problems on level `warning`, and everything else on level `debug`; nil for no log.
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
            memoryHits: counter("hits", ("layer", "memory")),
            diskHits: counter("hits", ("layer", "\(cache.diskLayer)")),
            misses: counter("misses"), revalidations: counter("revalidations"), stores: counter("stores"),
            notStored: counter("not_stored"), evictions: counter("evictions"), savedBytes: counter("saved_bytes"),
            problems: counter("problems"))
        let outcomes = ["hit", "stale", "revalidated", "expired", "miss", "bypass", "failed"]
        loads = Dictionary(
            uniqueKeysWithValues: outcomes.map { outcome in
                let timer = Metrics.Timer(
                    label: "http_cache_load_duration", dimensions: [("cache", name), ("outcome", outcome)],
                    factory: factory)
                return (outcome, (counter("loads", ("outcome", outcome)), timer))
            })
        memoryBytes = gauge("memory_bytes")
        diskBytes = gauge("\(cache.diskLayer)_bytes")
    }

    /// Counts and logs until its service group ends, or the task is cancelled. The counters are brought up to date
    /// every 10 seconds.
    public func run() async {
        await cancelWhenGracefulShutdown { await self.run(updatingEvery: 10) }
    }

    /// Counts and logs until the task is cancelled.
    /// - Parameter interval: the seconds between two updates of the counters; `.infinity` if you call `update()`
    ///   yourself.
    public func run(updatingEvery interval: TimeInterval) async {
        let events = cache.events()
        // By `perform`: what waits for the folder or a server must not run on a thread that other tasks need.
        let opening = await cache.perform { $0.openingError }
        if let opening { report("\(opening)") }
        await cache.perform { _ in self.update() }
        await withTaskGroup(of: Void.self) { group in
            group.addTask { for await event in events { self.record(event, reported: opening) } }
            group.addTask {
                while !Task.isCancelled {
                    try? await Task.sleep(nanoseconds: UInt64(min(max(0.001, interval), 1e9) * 1e9))
                    await self.cache.perform { _ in self.update() }
                }
            }
        }
    }

    /// Updates the counters now, for an endpoint that is read more often than `run(updatingEvery:)` updates them. It
    /// may wait for the folder or for the server of a storage, so do not call it in a task or on an event loop.
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

    /// - Parameter reported: a problem that was reported already, and may arrive as an event as well.
    func record(_ event: DiskURLCache.Event, reported: DiskURLCache.Error? = nil) {
        switch event {
        case .load(let load):
            if let (count, duration) = loads[load.outcome.name] {
                count.increment()
                duration.recordSeconds(load.duration)
            }
            guard load.notStoredReason != nil else { return }
            counters.notStored.increment()
            logger?.debug("\(load)")
        case .notStored(_, let reason):
            // All other reasons are in the report of the load.
            if reason == .diskFailed { report("\(event)") }
        case .evicted(let entries, let bytes):
            logger?.debug("evicted from disk", metadata: ["entries": "\(entries)", "bytes": "\(bytes)"])
        case .problem(let error):
            if error != reported { report("\(error)") }
        case .invalidated: logger?.debug("\(event)")
        case .stored: break
        @unknown default: break
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
        case .expired: "expired"
        case .miss: "miss"
        case .bypass: "bypass"
        case .failed, .notAllowed: "failed"
        @unknown default: "other"
        }
    }
}
