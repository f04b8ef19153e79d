import Foundation

/// How files are protected while an Apple device is locked (`FileProtectionType`); without effect elsewhere.
public enum CacheFileProtection: Sendable, Hashable {
    /// Files can always be read (`.none`).
    case none
    /// Files can be read once the device was unlocked after a restart (`.completeUntilFirstUserAuthentication`).
    case untilFirstUnlock
    /// Files can be read while the device is unlocked, and while they are open (`.completeUnlessOpen`).
    case unlessOpen
    /// Files can be read while the device is unlocked (`.complete`).
    case complete
}

#if canImport(Darwin)
    extension CacheFileProtection {
        var attribute: FileProtectionType {
            switch self {
            case .none: .none
            case .untilFirstUnlock: .completeUntilFirstUserAuthentication
            case .unlessOpen: .completeUnlessOpen
            case .complete: .complete
            }
        }

        init?(_ attribute: FileProtectionType?) {
            let all: [CacheFileProtection] = [.none, .untilFirstUnlock, .unlessOpen, .complete]
            guard let value = all.first(where: { $0.attribute.rawValue == attribute?.rawValue }) else { return nil }
            self = value
        }
    }
#endif
