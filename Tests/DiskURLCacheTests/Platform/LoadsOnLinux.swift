import Testing

@testable import DiskURLCache

extension Trait where Self == ConditionTrait {
    /// For suites that expect of URLSession what it does on Linux, where every load is the loader's. `AppleTests` are
    /// for the others.
    static var loadsOnLinux: ConditionTrait {
        .enabled(if: Platform.current == .linux, "expects what URLSession on Linux does")
    }
}
