import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The core alone loads, stores and finds: no `URLCache` is made.
@Suite struct CacheCoreTests {
    private let scratch: ScratchDirectory
    private let clock = ManualClock()

    init() throws {
        scratch = try ScratchDirectory("core")
    }

    private func core(_ change: (inout DiskURLCache.Configuration) -> Void = { _ in }) -> CacheCore {
        CacheCore(DiskURLCache.Configuration(in: scratch, clock: clock, change))
    }

    private static func network() -> MemoryTransport {
        MemoryTransport { _, exchange in
            exchange.head(200, ["Cache-Control": "max-age=60"])
            exchange.piece("text")
            exchange.end()
        }
    }

    @Test func itLoadsStoresAndFinds() async throws {
        let core = core()
        let network = Self.network()
        let request = Responses.request("/a")
        for outcome in ["miss", "hit"] {
            let hop = core.resolve(DiskURLCache.Request(request))
            let answer = try await LoadReader(hop, from: core, over: network).answer()
            #expect(answer.data == Data("text".utf8))
            #expect(answer.report.outcome.description.hasPrefix(outcome))
        }
        #expect(network.requests.count == 1)
        #expect(core.entry(for: request)?.entry.body == Data("text".utf8))
        core.remove(request)
        #expect(core.entry(for: request) == nil)
    }

    /// Whoever brings a response, a load or the app: rules, tags and layers are the same.
    @Test(arguments: ["load", "app"]) func everythingIsStoredByTheSameRules(_ way: String) async throws {
        let rules = [
            DiskURLCache.Rule(for: .path("/never"), storage: .never),
            DiskURLCache.Rule(for: .path("/memory"), storage: .memoryOnly),
            DiskURLCache.Rule(for: .path("/tagged"), tags: ["a"], isPinned: true),
        ]
        let core = core { $0.rules = rules }
        for path in ["/never", "/memory", "/tagged"] {
            let request = Responses.request(path)
            if way == "app" {
                let fields = ["Cache-Control": "max-age=60"]
                core.store(Responses.cached(Responses.url(path), "text", fields: fields), for: request)
            } else {
                let hop = core.resolve(DiskURLCache.Request(request))
                _ = try await LoadReader(hop, from: core, over: Self.network()).answer()
            }
        }
        #expect(core.entry(for: Responses.request("/never")) == nil)
        #expect(core.entry(for: Responses.request("/memory"))?.entry.metadata.placement == .memoryOnly)
        let tagged = try #require(core.entry(for: Responses.request("/tagged"))?.entry.metadata)
        #expect(tagged.tags == ["a"] && tagged.isPinned && tagged.placement == .memoryAndDisk)
    }
}
