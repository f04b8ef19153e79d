import Foundation

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A plain `URLSession` over a cache of its own, for one row.
///
/// Time is the row's own too, so that its pauses take none.
final class ConformanceClient: Sendable {
    enum Mode: String, Sendable, CaseIterable {
        /// One cache, whose disk capacity is 0.
        case memory
        /// The cache is flushed and opened again before each request, and has no memory to answer from.
        case restartedDisk
    }

    static let isRealTime = ProcessInfo.processInfo.environment["DISKURLCACHE_CONFORMANCE_REAL_TIME"] == "1"

    private let mode: Mode
    private let clock = ManualClock()
    private let scratch: ScratchDirectory
    private let current: Mutex<(cache: DiskURLCache, session: URLSession)>

    init(_ mode: Mode) throws {
        self.mode = mode
        scratch = try ScratchDirectory("conformance")
        current = Mutex(Self.open(mode, scratch.appending("cache"), Self.isRealTime ? .system : clock.wallClock))
    }

    deinit {
        current.withLock { current in
            current.session.finishTasksAndInvalidate()
            // The session lives on for a moment, and the cache with it: what it still wrote would outlast `scratch`.
            current.cache.flush()
        }
    }

    var now: @Sendable () -> Date { time.now }

    /// By which the cache and the origin tell the time.
    private var time: WallClock { Self.isRealTime ? .system : clock.wallClock }

    /// Loads, and if the step says so waits until a refresh in the background is stored.
    func load(_ request: URLRequest, refreshes: Bool) async throws -> SeenResponse {
        let (cache, session) = current.withLock { $0 }
        let events = cache.events()
        let (data, response) = try await session.data(for: request)
        guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
        if refreshes {
            for await case .stored in events { break }
        }
        return SeenResponse(response, data)
    }

    /// What happens between two steps.
    func rest(pauses: Bool) async {
        if pauses { await pause() }
        guard mode == .restartedDisk else { return }
        current.withLock { current in
            current.session.finishTasksAndInvalidate()
            current.cache.flush()
            current = Self.open(mode, scratch.appending("cache"), time)
        }
    }

    private func pause() async {
        if Self.isRealTime {
            try? await Task.sleep(nanoseconds: 3_000_000_000)
        } else {
            clock.advance(by: 3)
        }
    }

    private static func open(
        _ mode: Mode, _ directory: URL, _ time: WallClock
    ) -> (cache: DiskURLCache, session: URLSession) {
        var settings = DiskURLCache.Configuration(
            memoryCapacity: mode == .memory ? 16 << 20 : 0, diskCapacity: mode == .memory ? 0 : 16 << 20,
            directory: directory)
        settings.clock = time
        let cache = DiskURLCache(configuration: settings)
        let configuration = URLSessionConfiguration.default
        cache.attach(to: configuration)
        return (cache, URLSession(configuration: configuration))
    }
}
