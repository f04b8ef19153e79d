/// Locks for values that are made when they are first needed. All objects share these 32 locks, since a lock for each
/// object would cost more than most of the objects do.
///
/// A lock is held while a value is read or stored, never while it is made: making it may need the lock of a different
/// object, which may be the same lock.
enum SharedLock {
    private static let locks = (0..<32).map { _ in Mutex((), isContended: true) }

    @inline(__always)
    static func withLock<Result>(of object: AnyObject, _ body: () throws -> Result) rethrows -> Result {
        // The addresses of two objects differ by at least sixteen bytes.
        let address = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
        return try locks[Int((address >> 4 ^ address >> 10) & 31)].withLock { _ in try body() }
    }

    /// A value that is made once for an object. If two threads make it at the same time, both get the one that was
    /// stored first.
    /// - Parameters:
    ///   - get: returns the stored value, nil if there is none yet. The lock is held.
    ///   - make: makes the value, perhaps in two threads at once. The lock is not held.
    ///   - set: stores the value. The lock is held.
    @inline(__always)
    static func once<Value>(
        of object: AnyObject, get: () -> Value?, make: () -> Value, set: (Value) -> Void
    ) -> Value {
        if let value = withLock(of: object, get) { return value }
        let new = make()
        return withLock(of: object) {
            if let value = get() { return value }
            set(new)
            return new
        }
    }
}
