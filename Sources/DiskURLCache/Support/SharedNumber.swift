#if canImport(Glibc) || canImport(Musl)
    import Synchronization
#endif

/// A number that many threads read at each lookup.
package final class SharedNumber: Sendable {
    #if canImport(Glibc) || canImport(Musl)
        private let number: Atomic<UInt64>
        package init(_ value: UInt64) { number = Atomic(value) }
        @inline(__always)
        package var value: UInt64 {
            get { number.load(ordering: .relaxed) }
            set { number.store(newValue, ordering: .releasing) }
        }

        /// True for the one thread of several that replaces this value.
        package func replace(_ old: UInt64, by new: UInt64) -> Bool {
            number.compareExchange(expected: old, desired: new, ordering: .acquiringAndReleasing).exchanged
        }
    #else
        // `Atomic` needs iOS 18 and macOS 15.
        private let number: Mutex<UInt64>
        package init(_ value: UInt64) { number = Mutex(value, isContended: true) }
        package var value: UInt64 {
            get { number.withLock { $0 } }
            set { number.withLock { $0 = newValue } }
        }

        package func replace(_ old: UInt64, by new: UInt64) -> Bool {
            number.withLock { number in
                guard number == old else { return false }
                number = new
                return true
            }
        }
    #endif
}
