import DiskURLCache
import DiskURLCacheTools
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One row of the table: a load. Codable, since the new process sends its rows as JSON.
struct Row: Codable {
    let url: URL
    let source: String
    let isFromCache: Bool
    let seconds: TimeInterval
    let bytes: Int
    /// Tells whether two passes got the same bytes.
    let digest: UInt64
    /// Why the load failed, or what the cache did with its answer.
    let notes: [String]

    init(_ url: URL, _ load: WatchedLoad, in cache: DiskURLCache) {
        self.url = url
        source = load.source
        isFromCache = load.isFromCache
        seconds = load.seconds
        bytes = load.data.count
        digest = load.data.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
        notes = Self.notes(url, load, in: cache)
    }

    private static func notes(_ url: URL, _ load: WatchedLoad, in cache: DiskURLCache) -> [String] {
        if let error = load.error { return ["The load failed: \(words(for: error))"] }
        guard let response = load.response else { return [] }
        // If redirects were followed, this is the response to the last request.
        let explanation = cache.explanation(for: URLRequest(url: response.url ?? url), response: response)
        return explanation.description.split(separator: "\n").map(String.init)
    }
}

/// Loads each URL once, one after the other.
func pass(over urls: [URL], watching cache: DiskURLCache) async -> [Row] {
    var rows: [Row] = []
    for url in urls {
        rows.append(Row(url, await load(url, watching: cache), in: cache))
    }
    return rows
}
