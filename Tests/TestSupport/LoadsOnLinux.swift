import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
    private let isLinux = true
#else
    private let isLinux = false
#endif

extension Trait where Self == ConditionTrait {
    /// For suites that expect of URLSession what it does on Linux, where every load is the loader's. `AppleTests` are
    /// for the others.
    public static var loadsOnLinux: ConditionTrait {
        .enabled(if: isLinux, "expects what URLSession on Linux does")
    }
}
