import Foundation

/// A value that can be reached only while its lock is held.
///
/// `@unchecked Sendable`: the value is read and written under the lock only.
public final class Guarded<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    public init(_ value: Value) {
        self.value = value
    }

    public func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }
}

extension Guarded where Value: FixedWidthInteger {
    /// Counts: 1 at the first call, then one more each time.
    public func next() -> Value {
        withLock { count in
            count += 1
            return count
        }
    }
}

extension Guarded<Bool> {
    /// True at the first call only.
    public func disarm() -> Bool {
        withLock { isArmed in
            defer { isArmed = false }
            return isArmed
        }
    }
}
