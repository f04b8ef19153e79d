import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The parts of the core by short names, for tests that look behind the public class.
extension DiskURLCache {
    var configuration: Configuration { core.configuration }
    var store: TieredStore { core.store }
    var hub: EventHub { core.hub }
    var loads: LoadTable { core.loads }
    var now: Date { core.now }

    func key(for request: URLRequest) -> RequestKey? { core.key(for: request) }
    func resolve(_ request: URLRequest) -> ResolvedRequest { core.resolve(DiskURLCache.Request(request)) }
    func invalidate(_ url: URL) { core.invalidate(url) }
}
