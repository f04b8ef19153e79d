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

    /// The number of an entry that replaces one with the number `old`. Another process may have given that, and it may
    /// be greater than those of this one: the new one is greater still.
    func next(at date: Date, after old: UInt64) -> UInt64 { max(next(at: date), old == .max ? .max : old + 1) }

    /// The smallest number of an entry that is stored at `date`: microseconds since 1970.
    static func number(at date: Date) -> UInt64 {
        UInt64(exactly: (max(0, date.timeIntervalSince1970) * 1_000_000).rounded(.down)) ?? 0
    }
}
