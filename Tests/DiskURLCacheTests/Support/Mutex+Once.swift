@testable import DiskURLCache

extension Mutex where Value: FixedWidthInteger {
    /// One more than the last time; the first time 1.
    func next() -> Value {
        withLock { count in
            count += 1
            return count
        }
    }
}

extension Mutex<Bool> {
    /// True the first time.
    func disarm() -> Bool {
        withLock { isArmed in
            defer { isArmed = false }
            return isArmed
        }
    }
}
