import Foundation

extension URL {
    /// Whether both have the same scheme, host and port (RFC 9110 §4.3.1). False if one of them has no host.
    func hasSameOrigin(as other: URL) -> Bool {
        guard let scheme = scheme?.lowercased(), scheme == other.scheme?.lowercased() else { return false }
        guard let host = host?.lowercased(), !host.isEmpty else { return false }
        guard host == other.host?.lowercased() else { return false }
        return port(for: scheme) == other.port(for: scheme)
    }

    private func port(for scheme: String) -> Int? {
        if let port { return port }
        switch scheme {
        case "https": return 443
        case "http": return 80
        default: return nil
        }
    }
}
