import DiskURLCache
import Foundation

extension DiskURLCache {
    /// A cache in memory for one test. It opens no folder, unless `configure` sets a disk capacity, and its time is
    /// that of a clock that the test sets.
    /// - Parameters:
    ///   - clock: the clock by which the cache judges freshness and age.
    ///   - configure: changes the settings that matter to the test, such as rules. Called once, before this method
    ///     returns.
    public static func forTesting(
        clock: TestClock = TestClock(), configure: (inout Configuration) -> Void = { _ in }
    ) -> DiskURLCache {
        var configuration = Configuration(memoryCapacity: 64 << 20, diskCapacity: 0)
        configure(&configuration)
        configuration.setClock { clock.date }
        return DiskURLCache(configuration: configuration)
    }

    /// Returns when no background refresh (`stale-while-revalidate`, RFC 5861 §3) is running and all stores before the
    /// call are done, or when the task is cancelled. It does not wait for loads that the test itself awaits. Can be
    /// called from any task.
    public func waitUntilIdle() async {
        // There is no notification of the end of a refresh, so this looks again and again.
        while core.loads.isRefreshing {
            guard (try? await Task.sleep(nanoseconds: 1_000_000)) != nil else { return }
        }
        await perform { $0.flush() }
    }
}
