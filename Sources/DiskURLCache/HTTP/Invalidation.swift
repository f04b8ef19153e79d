import Foundation

/// Which stored responses an unsafe request makes invalid (RFC 9111 §4.4).
enum Invalidation {
    /// The URIs whose every stored response is to go: the target, and `Location` and `Content-Location` where they have
    /// the target's origin. Empty for safe methods and for error responses.
    static func urls(method: String, target: URL, status: Int, fields: HeaderFields) -> [URL] {
        []
    }
}
