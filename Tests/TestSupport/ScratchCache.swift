import DiskURLCache
import Foundation

extension DiskURLCache.Configuration {
    /// The settings of a cache in a scratch directory that takes the time from a test's clock.
    /// - Parameters:
    ///   - memory: the capacity of memory, in bytes.
    ///   - disk: the capacity of the disk, in bytes.
    public init(
        in scratch: ScratchDirectory, clock: ManualClock, memory: Int = 1 << 20, disk: Int = 10 << 20,
        _ change: (inout Self) -> Void = { _ in }
    ) {
        self.init(memoryCapacity: memory, diskCapacity: disk, directory: scratch.appending("cache"))
        setClock { clock.now }
        change(&self)
    }
}

extension DiskURLCache {
    /// A cache in a scratch directory that takes the time from a test's clock.
    public convenience init(
        in scratch: ScratchDirectory, clock: ManualClock, memory: Int = 1 << 20, disk: Int = 10 << 20,
        _ change: (inout Configuration) -> Void = { _ in }
    ) {
        self.init(configuration: Configuration(in: scratch, clock: clock, memory: memory, disk: disk, change))
    }
}
