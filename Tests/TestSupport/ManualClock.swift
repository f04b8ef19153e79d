import DiskURLCache
import DiskURLCacheTesting
import Foundation

/// A clock that moves only when a test says so: `DiskURLCache.TestClock`, which begins at a whole second and counts in
/// fractions of seconds too.
public final class ManualClock: Sendable {
    /// The clock in the form that the library takes.
    public let testClock: DiskURLCache.TestClock

    /// The default is a whole second, since HTTP dates have no fractions. And it is long ago: the origin's `Date` is
    /// the real time, and a response that was made before `now` would count as old.
    public init(_ start: Date = Date(timeIntervalSince1970: 1_700_000_000)) {
        testClock = DiskURLCache.TestClock(date: start)
    }

    public var now: Date { testClock.date }

    public func advance(by seconds: TimeInterval) {
        testClock.advance(by: .seconds(seconds))
    }

    public func set(_ date: Date) {
        testClock.date = date
    }
}
