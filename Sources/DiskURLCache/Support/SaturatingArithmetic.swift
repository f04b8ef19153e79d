import Foundation

/// Sums of values that come from outside: a wrong number must not trap.
extension FixedWidthInteger where Self: SignedInteger {
    package func subtractingSaturated(_ other: Self) -> Self {
        let (difference, overflow) = subtractingReportingOverflow(other)
        return overflow ? (other > 0 ? .min : .max) : difference
    }

    func addingSaturated(_ other: Self) -> Self {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other > 0 ? .max : .min) : sum
    }
}

extension Int64 {
    /// Whole seconds, brought into range; not a number counts as 0.
    init(clampingSeconds seconds: TimeInterval) {
        guard !seconds.isNaN else {
            self = 0
            return
        }
        self = Int64(exactly: seconds.rounded(.down)) ?? (seconds < 0 ? 0 : .max)
    }
}
