@testable import DiskURLCache

extension Mutex where Value: FixedWidthInteger {
    /// Counts: 1 at the first call, then one more each time.
    func next() -> Value {
        withLock { count in
            count += 1
            return count
        }
    }
}

extension Mutex<Bool> {
    /// True at the first call only.
    func disarm() -> Bool {
        withLock { isArmed in
            defer { isArmed = false }
            return isArmed
        }
    }
}
