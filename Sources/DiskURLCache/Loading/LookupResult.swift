import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What `getCachedResponse(for:)` found: for a caller the response that is stored, for our own protocol, to which
/// Foundation hands it on, all variants and a body that need not be read again.
///
/// `@unchecked Sendable`: as its superclass; what it adds is constant.
final class LookupResult: CachedURLResponse, @unchecked Sendable {
    let variants: [StoredVariant]

    init(_ response: CachedURLResponse, variants: [StoredVariant]) {
        self.variants = variants
        super.init(
            response: response.response, data: response.data, userInfo: response.userInfo,
            storagePolicy: response.storagePolicy)
    }

    #if canImport(Darwin)
        required init?(coder: NSCoder) {
            variants = []
            super.init(coder: coder)
        }
    #endif
}
