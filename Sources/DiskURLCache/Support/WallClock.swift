import Foundation

/// The time, injected so that tests can set it.
package struct WallClock: Sendable {
    var now: @Sendable () -> Date

    static let system = WallClock { Date() }
}
