import Foundation

/// The time, injected so that a test can let a year pass in an instant.
struct WallClock: Sendable {
    var now: @Sendable () -> Date

    static let system = WallClock { Date() }
}
