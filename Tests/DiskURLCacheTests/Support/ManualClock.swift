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

extension DiskURLCache {
    /// A cache in a scratch directory that takes the time from a test's clock.
    /// - Parameters:
    ///   - memory: the capacity of memory, in bytes.
    ///   - disk: the capacity of the disk, in bytes.
    convenience init(in scratch: ScratchDirectory, clock: ManualClock, memory: Int, disk: Int) {
        var configuration = Configuration(
            memoryCapacity: memory, diskCapacity: disk, directory: scratch.appending("cache"))
        configuration.clock = clock.wallClock
        self.init(configuration: configuration)
    }
}
