import Foundation

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension CachedURLResponse {
    /// Whether both say the same, `userInfo` apart.
    func isSame(as other: CachedURLResponse) -> Bool {
        guard storagePolicy == other.storagePolicy, response.url == other.response.url, data == other.data,
            let one = response as? HTTPURLResponse, let other = other.response as? HTTPURLResponse
        else { return false }
        return one.statusCode == other.statusCode && HeaderFields(one) == HeaderFields(other)
    }
}
