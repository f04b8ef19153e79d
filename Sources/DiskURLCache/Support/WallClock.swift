import Foundation

/// The wall clock; tests inject their own.
package struct WallClock: Sendable {
    var now: @Sendable () -> Date

    static let system = WallClock { Date() }
}
