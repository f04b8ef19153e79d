import Foundation

extension TimeInterval {
    /// A number of minutes, in seconds: `request.cacheLifetime = .minutes(5)`.
    public static func minutes(_ count: Double) -> TimeInterval { count * 60 }

    /// A number of hours, in seconds.
    public static func hours(_ count: Double) -> TimeInterval { count * 3_600 }

    /// A number of days of 24 hours, in seconds.
    public static func days(_ count: Double) -> TimeInterval { count * 86_400 }
}
