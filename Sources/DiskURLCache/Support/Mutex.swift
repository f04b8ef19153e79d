import Foundation

/// A value that can be reached only while its lock is held.
///
/// Has the API of `Synchronization.Mutex`, which needs iOS 18 and macOS 15. The lock is not recursive. `Concurrency.md`
/// lists all locks, what they guard, and which may be held across file operations.
///
/// `@unchecked Sendable`: the value is reached only inside `withLock`. Its type need not be Sendable, since it does not
/// leave the lock unless a caller copies it out.
package final class Mutex<Value>: @unchecked Sendable {
    // Lock and value are in memory of their own, so that Swift does not check exclusive access at run time, which the
    // lock ensures (a twentieth of a memory hit).
    private let memory: UnsafeMutableRawPointer
    private let lock: UnsafeMutablePointer<Lock>
    private let value: UnsafeMutablePointer<Value>

    /// - Parameter isContended: true for one of several locks that many threads take all the time. The lock then fills
    ///   whole cache lines, so that threads that take different locks do not slow each other down. Making it costs
    ///   1,000 instructions.
    package init(_ value: Value, isContended: Bool = false) {
        let unit = isContended ? 64 : 16
        let valueOffset =
            (MemoryLayout<Lock>.size + MemoryLayout<Value>.alignment - 1) / MemoryLayout<Value>.alignment
            * MemoryLayout<Value>.alignment
        let size = (valueOffset + MemoryLayout<Value>.size + unit - 1) / unit * unit
        assert(MemoryLayout<Value>.alignment <= unit)
        // `allocate` asks for the alignment that `malloc` has anyway, which takes longer; a load makes six locks.
        var allocated: UnsafeMutableRawPointer?
        if isContended { posix_memalign(&allocated, unit, size) } else { allocated = malloc(size) }
        guard let memory = allocated else { fatalError("no memory") }
        self.memory = memory
        lock = memory.initializeMemory(as: Lock.self, to: Lock())
        self.value = (memory + valueOffset).initializeMemory(as: Value.self, to: value)
        Self.initialize(lock)
    }

    deinit {
        Self.destroy(lock)
        value.deinitialize(count: 1)
        lock.deinitialize(count: 1)
        free(memory)
    }

    @inline(__always)
    package func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        Self.lock(lock)
        defer { Self.unlock(lock) }
        return try body(&value.pointee)
    }
}
