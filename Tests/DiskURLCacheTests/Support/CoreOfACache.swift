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

// What no caller is told: without it a test would not know when to go on.

extension DiskURLCache {
    /// Waits until that many loads wait for the answer to another load's request.
    func untilLoadsWait(_ count: Int, sourceLocation: SourceLocation = #_sourceLocation) async {
        await eventually("\(count) loads that wait", sourceLocation: sourceLocation) { loads.waiterCount >= count }
    }

    var isRefreshing: Bool { loads.isRefreshing }

    /// Waits until no refresh in the background is in progress.
    func untilRefreshed(sourceLocation: SourceLocation = #_sourceLocation) async {
        await eventually("the end of the refresh", sourceLocation: sourceLocation) { !isRefreshing }
    }
}
