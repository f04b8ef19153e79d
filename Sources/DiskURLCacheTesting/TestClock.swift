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
        /// - Parameter time: the time to add: `.minutes(2)`.
        public func advance(by time: TimeSpan) {
            lock.withLock { date += time.seconds }
        }
    }
}
