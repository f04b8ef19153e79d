import DiskURLCache
import ExampleSupport
import Foundation

/// One load as the table shows it. Codable, since the new process hands its rows over as JSON.
struct Row: Codable {
    let url: URL
    let source: String
    let isFromCache: Bool
    let seconds: TimeInterval
    let bytes: Int
    /// Tells whether two passes got the same bytes.
    let digest: UInt64

    init(_ url: URL, _ load: WatchedLoad) {
        self.url = url
        source = load.source
        isFromCache = load.isFromCache
        seconds = load.seconds
        bytes = load.data.count
        digest = load.data.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
    }
}

/// Loads each URL once, one after the other.
func pass(over urls: [URL], watching cache: DiskURLCache) async -> [Row] {
    var rows: [Row] = []
    for url in urls {
        rows.append(Row(url, await load(url, watching: cache)))
    }
    return rows
}
