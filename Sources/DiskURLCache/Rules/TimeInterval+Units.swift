import Foundation

extension TimeInterval {
    /// So many minutes in seconds: `request.cacheLifetime = .minutes(5)`.
    public static func minutes(_ count: Double) -> TimeInterval { count * 60 }

    /// So many hours in seconds.
    public static func hours(_ count: Double) -> TimeInterval { count * 3_600 }

    /// So many days in seconds, of 24 hours each.
    public static func days(_ count: Double) -> TimeInterval { count * 86_400 }
}
