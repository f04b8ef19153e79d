import Foundation

/// Hands out the numbers of entries. A number names a response, and counts its changes: the upper 56 bits are the wall
/// clock in microseconds when the origin sent or confirmed the response, or one more than the last if the clock has not
/// advanced; the lower 8 are how often a pin, a tag or a mark has changed the entry since. So numbers grow with every
/// response, also from launch to launch, and of two numbers the larger one is of the newer version.
final class EntrySequence: Sendable {
    private let last = Mutex<UInt64>(0)

    func next(at date: Date) -> UInt64 { next(at: date, after: 0) }

    /// The number of a response that confirms one with the number `old`. Another process may have given that, and it
    /// may be greater than those of this one: the new one is greater still.
    func next(at date: Date, after old: UInt64) -> UInt64 {
        let number = Self.number(at: date)
        return last.withLock { last in
            last = max((last | 255) &+ 1, number)
            return max(last, (old | 255) &+ 1)
        }
    }

    /// The smallest number of a response that is stored at `date`: microseconds since 1970.
    static func number(at date: Date) -> UInt64 {
        (UInt64(exactly: (max(0, date.timeIntervalSince1970) * 1_000_000).rounded(.down)) ?? 0) << 8
    }
}
