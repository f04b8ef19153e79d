import Foundation

@testable import DiskURLCache

/// A clock that moves only when a test says so.
final class ManualClock: Sendable {
    private let current: Mutex<Date>

    /// The default is a whole second, since HTTP dates have no fractions. And it is long ago: the origin's `Date` is
    /// the real time, and a response that was made before `now` would count as old.
    init(_ start: Date = Date(timeIntervalSince1970: 1_700_000_000)) {
        current = Mutex(start)
    }

    var now: Date { current.withLock { $0 } }

    /// The clock in the form that the library takes.
    var wallClock: WallClock { WallClock { self.now } }

    func advance(by seconds: TimeInterval) {
        current.withLock { $0 += seconds }
    }

    func set(_ date: Date) {
        current.withLock { $0 = date }
    }
}

extension DiskURLCache.Configuration {
    /// The settings of a cache in a scratch directory that takes the time from a test's clock.
    /// - Parameters:
    ///   - memory: the capacity of memory, in bytes.
    ///   - disk: the capacity of the disk, in bytes.
    init(
        in scratch: ScratchDirectory, clock: ManualClock, memory: Int = 1 << 20, disk: Int = 10 << 20,
        _ change: (inout Self) -> Void = { _ in }
    ) {
        self.init(memoryCapacity: memory, diskCapacity: disk, directory: scratch.appending("cache"))
        self.clock = clock.wallClock
        change(&self)
    }
}

extension DiskURLCache {
    /// A cache in a scratch directory that takes the time from a test's clock.
    convenience init(
        in scratch: ScratchDirectory, clock: ManualClock, memory: Int = 1 << 20, disk: Int = 10 << 20,
        _ change: (inout Configuration) -> Void = { _ in }
    ) {
        self.init(configuration: Configuration(in: scratch, clock: clock, memory: memory, disk: disk, change))
    }
}
