import Foundation

/// Data protection classes of Apple platforms; without effect elsewhere.
public enum CacheFileProtection: Sendable, Hashable {
    case none
    case untilFirstUnlock
    case unlessOpen
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
