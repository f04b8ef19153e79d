import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// A cache in memory for one test: it opens no folder, and a clock that the test sets gives its time.
    /// - Parameters:
    ///   - clock: shows the time by which the cache judges freshness and age.
    ///   - configure: changes the settings of the app that matter to the test, such as rules. Called once, before this
    ///     method returns.
    public static func forTesting(
        clock: TestClock = TestClock(), configure: (inout Configuration) -> Void = { _ in }
    ) -> DiskURLCache {
        var configuration = Configuration(memoryCapacity: 64 << 20, diskCapacity: 0)
        configure(&configuration)
        configuration.setClock { clock.now }
        return DiskURLCache(configuration: configuration)
    }

    /// Returns when no refresh in the background (`stale-while-revalidate`, RFC 5861 §3) is in progress and each store
    /// before the call is done, or when the task is cancelled. Loads that the test awaits are not waited for. Can be
    /// called from any task.
    public func waitUntilIdle() async {
        // A refresh tells only the cache that it has ended, so the test looks again.
        while loads.isRefreshing {
            guard (try? await Task.sleep(nanoseconds: 1_000_000)) != nil else { return }
        }
        await perform { $0.flush() }
    }
}
