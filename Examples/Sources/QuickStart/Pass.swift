import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One load as the table shows it. Codable, since the new process hands its rows over as JSON.
struct Row: Codable {
    var url: URL
    /// `memory`, `disk`, `network`, or why it failed.
    var source: String
    var isFromCache: Bool
    var seconds: TimeInterval
    var bytes: Int
    /// Tells whether two passes got the same bytes.
    var digest: UInt64
}

/// Loads each URL once, one after the other, with plain `URLSession.shared`. All that is said of the cache comes from
/// its events.
func load(_ urls: [URL], watching cache: DiskURLCache) async -> [Row] {
    var events = cache.events().makeAsyncIterator()
    var rows: [Row] = []
    for url in urls {
        let start = Date()
        let result: Result<Data, any Error>
        do {
            result = .success(try await URLSession.shared.data(from: url).0)
        } catch {
            result = .failure(error)
        }
        let seconds = Date().timeIntervalSince(start)
        let report = await nextLoad(&events)
        rows.append(Row(url: url, report: report, result: result, seconds: seconds))
    }
    return rows
}

private func nextLoad(_ events: inout AsyncStream<DiskURLCache.Event>.Iterator) async -> DiskURLCache.LoadReport? {
    while let event = await events.next() {
        if case .load(let report) = event { return report }
    }
    return nil
}

extension Row {
    fileprivate init(
        url: URL, report: DiskURLCache.LoadReport?, result: Result<Data, any Error>, seconds: TimeInterval
    ) {
        let (source, isFromCache) =
            switch report?.outcome {
            case .hit(let layer)?: (layer.rawValue, true)
            case .staleHit(let layer, _)?: ("\(layer.rawValue), stale", true)
            case .revalidated(let layer)?: ("\(layer.rawValue) after 304", true)
            case .miss?, .bypass?: ("network", false)
            case .failed(let reason)?: ("failed: \(reason)", false)
            case nil: ("?", false)
            }
        let data = (try? result.get()) ?? Data()
        self.init(
            url: url, source: source, isFromCache: isFromCache, seconds: seconds, bytes: data.count,
            digest: data.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 })
    }
}
