import Foundation

/// Hands out numbers that grow with every stored entry, also from launch to launch: the wall clock in microseconds, or
/// the last number plus one if the clock has not advanced.
final class EntrySequence: Sendable {
    private let last = Mutex<UInt64>(0)

    func next(at date: Date) -> UInt64 {
        let number = Self.number(at: date)
        return last.withLock { last in
            last = max(last &+ 1, number)
            return last
        }
    }

    /// The smallest number of an entry that is stored at `date`: microseconds since 1970.
    static func number(at date: Date) -> UInt64 {
        UInt64(exactly: (max(0, date.timeIntervalSince1970) * 1_000_000).rounded(.down)) ?? 0
    }
}
