@testable import DiskURLCache

extension ManualClock {
    /// The clock in the form in which the library has it.
    var wallClock: WallClock { WallClock { self.now } }
}
