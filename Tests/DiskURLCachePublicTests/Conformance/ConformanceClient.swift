import DiskURLCache
import Foundation
import Testing

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
        /// The same by data tasks with a delegate in place of a completion handler.
        case memoryByDelegate
        /// The cache is flushed and opened again before each request, and has no memory to answer from.
        case restartedDisk
        /// As `memory`, of a shared cache: its own rows only, since the others do not differ.
        case shared
    }

    private let setup: Setup
    private let clock = ManualClock()
    private let scratch: ScratchDirectory
    private let current: Guarded<(cache: DiskURLCache, session: URLSession)>

    init(_ mode: Mode) throws {
        scratch = try ScratchDirectory("conformance")
        setup = Setup(
            mode: mode, directory: scratch.appending("cache"), clock: clock,
            delegate: mode == .memoryByDelegate ? RecordingDelegate() : nil)
        current = Guarded(setup.open())
    }

    deinit {
        current.withLock { current in
            current.session.finishTasksAndInvalidate()
            // The session lives on for a moment, and the cache with it: what it still wrote would outlast `scratch`.
            current.cache.flush()
        }
    }

    /// By which the cache and the origin tell the time.
    var now: @Sendable () -> Date { { [clock] in clock.now } }

    /// Loads, and if the step says so waits until a refresh in the background is stored.
    func load(_ request: URLRequest, refreshes: Bool) async throws -> SeenResponse {
        let (cache, session) = current.withLock { $0 }
        let events = cache.events()
        let (data, response) =
            if let delegate = setup.delegate {
                try await delegate.data(for: request, in: session)
            } else {
                try await session.data(for: request)
            }
        guard let response = response as? HTTPURLResponse else { throw URLError(.badServerResponse) }
        if refreshes {
            await events.stored()
        }
        return SeenResponse(response, data)
    }

    /// What happens between two steps. Asynchronous since other clients need that: `Integrations` plays the same rows.
    func rest(pauses: Bool) async {
        if pauses { clock.advance(by: 3) }
        guard setup.mode == .restartedDisk else { return }
        current.withLock { current in
            current.session.finishTasksAndInvalidate()
            current.cache.flush()
            current = setup.open()
        }
    }

    private struct Setup: Sendable {
        let mode: Mode
        let directory: URL
        let clock: ManualClock
        let delegate: RecordingDelegate?

        func open() -> (cache: DiskURLCache, session: URLSession) {
            let isOnDisk = mode == .restartedDisk
            let cache = DiskURLCache.forTesting(clock: clock.testClock) { settings in
                settings.memoryCapacity = isOnDisk ? 0 : 16 << 20
                settings.diskCapacity = isOnDisk ? 16 << 20 : 0
                settings.directory = directory
                settings.isShared = mode == .shared
                settings.targetedFields = ["CDN-Cache-Control"]
                settings.wrongDigest = .notStored
            }
            let configuration = URLSessionConfiguration.default.patient
            // Other tests have cookies for this host in the storage that sessions share, and a shared cache stores less
            // of such requests.
            configuration.httpCookieStorage = nil
            return (cache, cache.makeSession(configuration: configuration, delegate: delegate))
        }
    }
}
