import DiskURLCache
import DiskURLCacheAdapters
import DiskURLCacheTools
import Foundation
import Logging
import Metrics
import MetricsTestKit
import NIOConcurrencyHelpers
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

@testable import CacheMetrics

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(2))) final class CacheMetricsTests {
    private let directory = FileManager.default.temporaryDirectory.appendingPathComponent(
        "metrics-\(UUID().uuidString)")
    private let cache: DiskURLCache
    private let metrics = TestMetrics()
    private let lines = NIOLockedValueBox<[String]>([])
    private let health: CacheMetrics

    init() {
        cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: directory)
        var logger = Logger(label: "test") { [lines] _ in LineHandler(lines: lines) }
        logger.logLevel = .debug
        health = CacheMetrics(cache, name: "test", factory: metrics, logger: logger)
    }

    deinit {
        try? FileManager.default.removeItem(at: directory)
    }

    private func count(_ label: String, layer: String? = nil) -> Int64? {
        let dimensions = [("cache", "test")] + (layer.map { [("layer", $0)] } ?? [])
        return try? metrics.expectCounter("http_cache_\(label)", dimensions).totalValue
    }

    private func gauge(_ label: String) -> Double? {
        try? metrics.expectGauge("http_cache_\(label)", [("cache", "test")]).lastValue
    }

    /// Loads from an origin that answers with this field, or with 304 where it is asked about a tag and confirms.
    private func load(
        _ path: String, _ cacheControl: String = "max-age=60", body: Data = Data("body".utf8), confirms: Bool = true
    ) async throws {
        let url = try #require(URL(string: "https://example.com\(path)"))
        let origin = Origin(cacheControl: cacheControl, body: body, confirms: confirms)
        for try await _ in try await cache.load(URLRequest(url: url), through: origin) {}
    }

    @Test func countersFollowTheCache() async throws {
        try await load("/a")
        try await load("/a")
        cache.flush()
        cache.removeAllCachedResponses(from: .memory)
        try await load("/a")
        try await load("/b", "no-cache")
        try await load("/b", "no-cache")
        health.update()
        #expect(count("misses") == 2 && count("stores") == 2)
        #expect(count("hits", layer: "memory") == 1 && count("hits", layer: "disk") == 1)
        #expect(count("revalidations") == 1)
        #expect(count("saved_bytes") == 12)
        #expect(count("evictions") == 0)
        #expect(gauge("memory_bytes") == Double(cache.currentMemoryUsage))
        #expect(gauge("disk_bytes") == Double(cache.currentDiskUsage))

        // What was counted is not counted again.
        try await load("/a")
        health.update()
        health.update()
        #expect(count("misses") == 2 && count("hits", layer: "memory") == 2)
    }

    @Test func loadsAreCountedAndTimedByOutcome() async throws {
        func loads(_ outcome: String) -> (count: Int64?, times: Int?) {
            let dimensions = [("cache", "test"), ("outcome", outcome)]
            return (
                try? metrics.expectCounter("http_cache_loads", dimensions).totalValue,
                try? metrics.expectTimer("http_cache_load_duration", dimensions).values.count
            )
        }
        try await testGracefulShutdown { trigger in
            let task = Task { [health] in await health.run() }
            await eventually("the gauges") { gauge("disk_bytes") != nil }
            try await load("/a")
            try await load("/a")
            try await load("/b", "no-cache")
            try await load("/b", "no-cache")
            try await load("/c", "max-age=0, stale-if-error=60, stale-while-revalidate=60")
            try await load("/c", "max-age=60")
            try await load("/b", "no-cache", confirms: false)
            await eventually("the counted loads") { loads("expired").times == 1 && loads("miss").times == 3 }
            #expect(loads("miss").count == 3)
            for outcome in ["hit", "revalidated", "stale", "expired"] { #expect(loads(outcome).count == 1) }
            #expect(loads("failed").count == 0)
            // And it ends with its group.
            trigger.triggerGracefulShutdown()
            await task.value
        }
    }

    /// As its documentation lists them: services end in the opposite order.
    @Test func whatTheClientLoadsAtItsEndIsCountedAndLogged() async throws {
        let group = ServiceGroup(
            services: [health, LastLoad(cache: cache)],
            logger: Logger(label: "group", factory: { _ in SwiftLogNoOpLogHandler() }))
        let run = Task { try await group.run() }
        await eventually("the gauges") { gauge("disk_bytes") != nil }
        await group.triggerGracefulShutdown()
        try await run.value
        #expect(count("misses") == 1 && count("not_stored") == 1)
        #expect(lines.withLockedValue { $0 }.contains { $0.contains("https://example.com/last: 200") })
    }

    @Test func aProblemBeforeItRunsIsOneWarning() async throws {
        let file = directory.appendingPathExtension("file")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data("here".utf8).write(to: file)
        let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: file)
        let logger = Logger(label: "test") { [lines] _ in LineHandler(lines: lines) }
        let health = CacheMetrics(cache, name: "test", factory: metrics, logger: logger)
        let task = Task { await health.run() }
        await eventually("the gauges") { gauge("disk_bytes") != nil }
        task.cancel()
        await task.value
        let error = try #require(cache.openingError)
        // The first look at the folder sends an event, which may come later.
        health.record(.problem(error), reported: error)
        #expect(count("problems") == 1)
        #expect(lines.withLockedValue { $0 } == ["warning: \(error)"])
    }

    /// A storage that waits for a server holds up no thread of tasks.
    @Test func theSizeOfAStorageIsAskedOutsideOfTasks() async throws {
        let storage = RemoteStorage()
        var settings = DiskURLCache.Configuration(memoryCapacity: 1 << 20)
        settings.diskStorage = storage
        let health = CacheMetrics(DiskURLCache(configuration: settings), name: "test", factory: metrics)
        let task = Task { await health.run(updatingEvery: 0.001) }
        await eventually("three updates") { storage.isAskedInTask.withLockedValue { $0.count } >= 3 }
        task.cancel()
        await task.value
        #expect(storage.isAskedInTask.withLockedValue { !$0.contains(true) })
    }

    /// Instead of to standard error.
    @Test func aLoggerGetsWhatTheLibraryTellsDevelopers() throws {
        var settings = DiskURLCache.Configuration(memoryCapacity: 1 << 20, diskCapacity: 0)
        settings.sendLog(to: Logger(label: "test") { [lines] _ in LineHandler(lines: lines) })
        settings.rules = [.init(for: .host("not a host/"), storage: .never)]
        let error = try #require(DiskURLCache(configuration: settings).openingError)
        #expect(lines.withLockedValue { $0 } == ["warning: \(error)"])
    }

    @Test func whatWasEvictedIsCounted() async throws {
        for number in 0..<30 { try await load("/\(number)", body: Data(count: 60_000)) }
        cache.flush()
        health.update()
        #expect(try #require(count("evictions")) > 0)
    }

    @Test(arguments: [0.001, .infinity])
    func whileItRunsItCountsAndLogsWhatIsNotStored(interval: TimeInterval) async throws {
        let task = Task { [health] in await health.run(updatingEvery: interval) }
        // Then it listens.
        await eventually("the gauges") { gauge("disk_bytes") != nil }
        try await load("/a", "no-store")
        while count("not_stored") != 1 || count("misses") != 1 {
            if interval == .infinity { health.update() }
            try await Task.sleep(nanoseconds: 1_000_000)
        }
        await eventually("a line of the log") { !lines.withLockedValue(\.isEmpty) }
        let written = lines.withLockedValue { $0 }
        let line = try #require(written.first)
        #expect(line.hasPrefix("debug: GET https://example.com/a: 200, ") && line.contains("not stored: "))
        task.cancel()
        await task.value
    }

    @Test func onlyProblemsAreWarnings() {
        health.record(.evicted(entries: 2, bytesOnDisk: 100))
        health.record(.notStored(url: nil, reason: .refused))
        #expect(count("problems") == 0)
        health.record(.notStored(url: nil, reason: .diskFailed))
        #expect(count("problems") == 1)
        #expect(
            lines.withLockedValue { $0.map { $0.prefix(7) } } == ["debug: ", "warning"])
    }

    /// A folder that cannot be had, as a cache tells of it.
    @Test func aProblemOfTheCacheIsAWarning() throws {
        let file = directory.appendingPathComponent("file")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        try Data("here".utf8).write(to: file)
        let error = try #require(throws: DiskURLCache.Error.self) { try DiskURLCache.Inspector(directory: file) }
        health.record(.problem(error))
        #expect(count("problems") == 1)
        #expect(lines.withLockedValue { $0 } == ["warning: \(error)"])
    }
}

/// A storage that notes whether a task asks for its size.
private final class RemoteStorage: DiskURLCache.EntryStorage {
    let isAskedInTask = NIOLockedValueBox<[Bool]>([])

    func entries(named name: String) -> [DiskURLCache.Entry]? { [] }
    func store(_ entry: DiskURLCache.Entry, named name: String) {}
    func removeEntries(matching criteria: DiskURLCache.Criteria) {}
    func flush() {}

    var usage: Int {
        let isInTask = withUnsafeCurrentTask { $0 != nil }
        isAskedInTask.withLockedValue { $0.append(isInTask) }
        return 0
    }
}

/// As a client that still loads when its group ends.
private struct LastLoad: Service {
    let cache: DiskURLCache

    func run() async throws {
        try await gracefulShutdown()
        let url = try #require(URL(string: "https://example.com/last"))
        let origin = Origin(cacheControl: "no-store", body: Data("body".utf8))
        for try await _ in try await cache.load(URLRequest(url: url), through: origin) {}
    }
}

private struct Origin: DiskURLCache.Transport {
    let cacheControl: String
    let body: Data
    var confirms = true

    func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
        let isConfirmed = confirms && request.fields.contains { $0.name == "If-None-Match" }
        let fields = [("Cache-Control", cacheControl), ("ETag", "\"1\"")]
        receiver.receive(DiskURLCache.Head(status: isConfirmed ? 304 : 200, fields: fields))
        if !isConfirmed { await receiver.receive(body) }
    }
}
