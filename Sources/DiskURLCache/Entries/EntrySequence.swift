import Foundation

/// Hands out numbers that grow with every stored entry, across launches too: the wall clock in microseconds, or one
/// more than the last number when the clock was set back or stands still.
final class EntrySequence: Sendable {
    private let last = Mutex<UInt64>(0)

    func next(at date: Date) -> UInt64 {
        let number = Self.number(at: date)
        return last.withLock { last in
            last = max(last &+ 1, number)
            return last
        }
    }

    /// The least number that an entry gets at a time: microseconds since 1970.
    static func number(at date: Date) -> UInt64 {
        UInt64(exactly: (max(0, date.timeIntervalSince1970) * 1_000_000).rounded(.down)) ?? 0
    }
}
