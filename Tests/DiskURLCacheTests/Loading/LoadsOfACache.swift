import Foundation

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension LoadReader {
    convenience init(
        _ request: URLRequest, from cache: DiskURLCache, over transport: any LoadTransport, acceptsPieces: Bool = false,
        timeout: TimeInterval? = nil
    ) {
        self.init(
            cache.core.resolve(DiskURLCache.Request(request), variant: transport.keyVariant), from: cache.core,
            over: transport,
            acceptsPieces: acceptsPieces, timeout: timeout)
    }
}

extension LoadDriver {
    convenience init(
        cache: DiskURLCache, request: URLRequest, transport: any LoadTransport, client: any LoadClient
    ) {
        self.init(
            cache: cache.core,
            request: cache.core.resolve(DiskURLCache.Request(request), variant: transport.keyVariant),
            transport: transport, client: client)
    }
}
