import DiskURLCache
import Foundation

extension DiskURLCache {
    /// A clock that a test sets, so that a response can expire without waiting.
    ///
    /// Can be used from any thread.
    public final class TestClock: @unchecked Sendable {
        // `@unchecked`: `date` is read and written under `lock` only.
        private let lock = NSLock()
        private var date: Date

        /// - Parameter now: the time that the clock shows until the test sets it.
        public init(now: Date = Date()) {
            date = now
        }

        /// The time that the clock shows.
        public var now: Date {
            get { lock.withLock { date } }
            set { lock.withLock { date = newValue } }
        }

        /// Sets the clock forward, or back for a negative number.
        /// - Parameter seconds: the time to add, in seconds.
        public func advance(by seconds: TimeInterval) {
            lock.withLock { date += seconds }
        }
    }
}
