import DiskURLCache
import Foundation

extension DiskURLCache {
    /// A cache for one test: in memory, or with a disk that the test makes fail. It opens no folder without a disk,
    /// unless `configure` sets a disk capacity, and its time is that of a clock that the test sets.
    /// - Parameters:
    ///   - clock: the clock by which the cache judges freshness and age.
    ///   - disk: the disk for the cache's folder; nil for a cache in memory, or for the system's own disk. The caches
    ///     of a process that have the same disk have the same responses.
    ///   - configure: changes the settings that matter to the test, such as rules. Called once, before this method
    ///     returns.
    public static func forTesting(
        clock: TestClock = TestClock(), disk: TestDisk? = nil, configure: (inout Configuration) -> Void = { _ in }
    ) -> DiskURLCache {
        var configuration = Configuration(
            memoryCapacity: 64 << 20, diskCapacity: disk == nil ? 0 : 256 << 20, directory: disk?.folder)
        configure(&configuration)
        configuration.setClock { clock.date }
        if let disk { configuration.setFileSystem(disk) }
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
