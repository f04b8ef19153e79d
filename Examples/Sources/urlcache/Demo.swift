import ArgumentParser
import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Makes a cache of made-up entries, to look at the report with; the same ones each time.
struct Demo: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Makes a cache of made-up entries.", shouldDisplay: false)

    @OptionGroup var cache: CacheDirectory

    @Option var entries = 1_000

    private static let types = [
        "image/jpeg", "image/png", "application/json", "text/html", "text/css", "font/woff2", "application/javascript",
        "video/mp4", "<b>not a type</b>",
    ]

    func run() throws {
        if FileManager.default.fileExists(atPath: cache.url.path) {
            throw Problem("\(cache.directory) is there already.")
        }
        let target = DiskURLCache(memoryCapacity: 0, diskCapacity: .max, directory: cache.url)
        let log = DiskURLCache.EventLog(target)
        var random = Numbers()
        for number in 0..<entries {
            let type = Self.types[min(random.next(9), random.next(9))]
            let path = number % 50 == 0 ? "%3C/script%3E%3Cscript%3Ealert(1)%3C/script%3E" : "item"
            guard let url = URL(string: "https://host\(random.next(6)).example/\(path)/\(number)"),
                let response = HTTPURLResponse(
                    url: url, statusCode: random.next(40) == 0 ? 404 : 200, httpVersion: "HTTP/1.1",
                    headerFields: [
                        "Content-Type": type,
                        "Cache-Control": "max-age=\([0, 60, 3_600, 86_400, 31_536_000][random.next(5)])",
                    ])
            else { continue }
            let data = Data(repeating: UInt8(number & 255), count: random.next(40) * random.next(40) * random.next(40))
            target.storeCachedResponse(CachedURLResponse(response: response, data: data), for: URLRequest(url: url))
        }
        target.flush()
        log.flush()
        print("\(entries) entries in \(cache.directory).")
    }

    /// A linear congruential generator with the constants of Numerical Recipes.
    private struct Numbers {
        private var state: UInt32 = 1

        mutating func next(_ bound: Int) -> Int {
            state = state &* 1_664_525 &+ 1_013_904_223
            return Int(state >> 8) % bound
        }
    }
}
