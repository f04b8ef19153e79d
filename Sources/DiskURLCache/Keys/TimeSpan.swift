import Foundation

extension DiskURLCache {
    /// A length of time in a setting. A whole number counts seconds; `.minutes(5)`, `.hours(1)`
    /// and `.days(7)` say it in other units.
    ///
    /// ```swift
    /// settings.staleIfError = .days(1)
    /// settings.staleWhileRevalidate = 30
    /// settings.minimumDiskLifetime = DiskURLCache.TimeSpan(.milliseconds(500))
    /// ```
    public struct TimeSpan: Sendable, Hashable, CodedByForm {
        /// The length in seconds.
        package let seconds: TimeInterval

        /// A number of seconds.
        public static func seconds(_ count: TimeInterval) -> TimeSpan { TimeSpan(seconds: count) }
        /// A whole number of seconds.
        public static func seconds(_ count: Int) -> TimeSpan { seconds(Double(count)) }
        /// A number of thousandths of a second.
        public static func milliseconds(_ count: Int) -> TimeSpan { TimeSpan(seconds: Double(count) / 1_000) }
        /// A number of minutes.
        public static func minutes(_ count: Int) -> TimeSpan { seconds(Double(count) * 60) }
        /// A number of hours.
        public static func hours(_ count: Int) -> TimeSpan { seconds(Double(count) * 3_600) }
        /// A number of days of 24 hours.
        public static func days(_ count: Int) -> TimeSpan { seconds(Double(count) * 86_400) }

        private init(seconds: TimeInterval) { self.seconds = seconds }

        /// Finite, since a coder may know no other numbers: for ever is a hundred years, and what is no number is 0.
        package var form: TimeInterval {
            if seconds.isFinite { return seconds }
            return seconds > 0 ? 100 * 365 * 86_400 : 0
        }

        package init(form seconds: TimeInterval) { self.seconds = seconds }

        /// The same length.
        @available(macOS 13, iOS 16, tvOS 16, watchOS 9, *)
        public init(_ duration: Duration) {
            let parts = duration.components
            seconds = TimeInterval(parts.seconds) + TimeInterval(parts.attoseconds) / 1e18
        }
    }
}

extension DiskURLCache.TimeSpan: ExpressibleByIntegerLiteral {
    public init(integerLiteral value: Int64) { self.init(seconds: TimeInterval(value)) }
}

extension DiskURLCache.TimeSpan: PrintedByDescription {
    /// The number of seconds, such as `604800 s`.
    package var printedText: String { Int64(exactly: seconds).map { "\($0) s" } ?? "\(seconds) s" }
}
