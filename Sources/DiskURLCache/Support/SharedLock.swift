/// Locks for values that objects make when they are first needed. All objects share these locks: a lock for each object
/// would cost more than most of the objects.
///
/// Held while a value is read or stored, never while it is made: making it may take the same lock for another object.
enum SharedLock {
    private static let locks = (0..<32).map { _ in Mutex((), isContended: true) }

    @inline(__always)
    static func withLock<Result>(of object: AnyObject, _ body: () throws -> Result) rethrows -> Result {
        // Objects lie sixteen bytes apart at least.
        let address = UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque())
        return try locks[Int((address >> 4 ^ address >> 10) & 31)].withLock { _ in try body() }
    }

    /// The value that an object makes once. If a second thread is faster, both get its value.
    @inline(__always)
    static func once<Value>(
        of object: AnyObject, _ made: () -> Value?, _ make: () -> Value, keep: (Value) -> Void
    ) -> Value {
        if let value = withLock(of: object, made) { return value }
        let new = make()
        return withLock(of: object) {
            if let value = made() { return value }
            keep(new)
            return new
        }
    }
}
