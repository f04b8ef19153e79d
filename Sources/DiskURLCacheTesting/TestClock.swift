import DiskURLCache
import Foundation

extension DiskURLCache {
    /// A clock that a test sets, so that a response can expire without waiting. Where the system has `Clock`, it is
    /// one: give it to the code under test too, which then sleeps until the test advances the time.
    ///
    /// Can be used from any thread.
    public final class TestClock: @unchecked Sendable {
        // `@unchecked`: both are read and written under `lock` only.
        private let lock = NSLock()
        private var time: Date
        private var sleepers: [UUID: (until: Date, wake: CheckedContinuation<Void, any Swift.Error>)] = [:]

        /// - Parameter date: the time that the clock shows until the test sets it.
        public init(date: Date = Date()) {
            time = date
        }

        /// The time that the clock shows. Setting it ends the sleep of all who wait for that time.
        public var date: Date {
            get { lock.withLock { time } }
            set { change { $0 = newValue } }
        }

        /// Sets the clock forward, or back for a negative number.
        /// - Parameter time: the time to add: `.minutes(2)`.
        public func advance(by time: TimeSpan) {
            change { $0 += time.seconds }
        }

        private func change(_ change: (inout Date) -> Void) {
            let awake = lock.withLock {
                change(&time)
                let due = sleepers.filter { Self.hasCome($0.value.until, at: time) }
                for (id, sleeper) in due {
                    sleepers[id] = nil
                    time = max(time, sleeper.until)
                }
                return due.values.sorted { $0.until < $1.until }
            }
            for sleeper in awake { sleeper.wake.resume() }
        }

        /// Two halves of a `Date` may be less than the whole, by a ten-millionth of a second.
        private static func hasCome(_ date: Date, at time: Date) -> Bool { date.timeIntervalSince(time) < 1e-6 }

        fileprivate func wait(until date: Date) async throws {
            let id = UUID()
            try await withTaskCancellationHandler {
                try await withCheckedThrowingContinuation { continuation in
                    let isOver: Bool = lock.withLock {
                        // A task that was cancelled before it came here is not woken by its handler.
                        if Task.isCancelled { return true }
                        if Self.hasCome(date, at: time) {
                            time = max(time, date)
                            return true
                        }
                        sleepers[id] = (date, continuation)
                        return false
                    }
                    if isOver { continuation.resume() }
                }
                try Task.checkCancellation()
            } onCancel: {
                let sleeper = lock.withLock { sleepers.removeValue(forKey: id) }
                sleeper?.wake.resume(throwing: CancellationError())
            }
        }
    }
}

@available(macOS 13, iOS 16, tvOS 16, watchOS 9, *)
extension DiskURLCache.TestClock: Clock {
    /// A moment of the clock.
    public struct Instant: InstantProtocol {
        let date: Date

        public func advanced(by duration: Duration) -> Instant {
            Instant(date: date + DiskURLCache.TimeSpan(duration).seconds)
        }

        public func duration(to other: Instant) -> Duration {
            .seconds(other.date.timeIntervalSince(date))
        }

        public static func < (left: Instant, right: Instant) -> Bool { left.date < right.date }
    }

    /// The moment that the clock shows; ``date`` is the same as a date.
    public var now: Instant { Instant(date: date) }

    public var minimumResolution: Duration { .zero }

    /// Returns when the test has set the clock to this moment or later, at once if it was already; throws when the task
    /// is cancelled.
    public func sleep(until deadline: Instant, tolerance: Duration?) async throws {
        try await wait(until: deadline.date)
    }
}
