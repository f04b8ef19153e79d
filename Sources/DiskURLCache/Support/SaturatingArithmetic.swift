import Foundation

/// Sums of numbers from outside, which must not trap on overflow.
extension FixedWidthInteger where Self: SignedInteger {
    package func subtractingSaturated(_ other: Self) -> Self {
        let (difference, overflow) = subtractingReportingOverflow(other)
        guard overflow else { return difference }
        return other > 0 ? .min : .max
    }

    func addingSaturated(_ other: Self) -> Self {
        let (sum, overflow) = addingReportingOverflow(other)
        guard overflow else { return sum }
        return other > 0 ? .max : .min
    }
}

extension Int64 {
    /// Whole seconds: too large ones become the maximum, negative ones out of range and NaN become 0.
    init(clampingSeconds seconds: TimeInterval) {
        guard !seconds.isNaN else {
            self = 0
            return
        }
        self = Int64(exactly: seconds.rounded(.down)) ?? (seconds < 0 ? 0 : .max)
    }
}
