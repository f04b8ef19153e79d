import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The requests, header fields and bodies, which are typical of the web and the same for every side.
enum Content {
    /// Twelve fields, among them `Vary`. `Date` is the time of the start, so that all responses are fresh during the
    /// whole run.
    static let headers = headers(cacheControl: "public, max-age=86400")
    /// The field of the requests by which responses vary.
    static let acceptEncoding = "gzip, deflate, br"
    static let entityTag = "\"5d8c72a5edda8d6a\""

    static func headers(cacheControl: String) -> [String: String] {
        [
            "Accept-Ranges": "bytes",
            "Access-Control-Allow-Origin": "*",
            "Cache-Control": cacheControl,
            "Content-Type": "application/json; charset=utf-8",
            "Date": date,
            "ETag": entityTag,
            "Last-Modified": "Fri, 20 Nov 2026 08:00:00 GMT",
            "Server": "example/1.0",
            "Strict-Transport-Security": "max-age=31536000; includeSubDomains",
            "Vary": "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
            "X-Request-Id": "0f8fad5b-d9cb-469f-a165-70867728950e",
        ]
    }

    private static let date: String = {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: Date())
    }()

    static func url(_ number: Int) -> URL {
        URL(string: "https://cdn.example.com/assets/v3/items/item-\(number).json?size=large&lang=en")!
    }

    static func request(_ number: Int) -> URLRequest { request(url(number)) }

    static func request(_ url: URL) -> URLRequest {
        var request = URLRequest(url: url)
        request.setValue(acceptEncoding, forHTTPHeaderField: "Accept-Encoding")
        return request
    }

    static func body(_ count: Int, seed: Int = 1) -> Data {
        var generator = SeededGenerator(seed: UInt64(seed))
        var bytes = [UInt8](repeating: 0, count: count)
        for index in bytes.indices { bytes[index] = UInt8(truncatingIfNeeded: generator.next()) }
        return Data(bytes)
    }

    static func httpResponse(_ url: URL, headers: [String: String] = headers) -> HTTPURLResponse {
        HTTPURLResponse(url: url, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: headers)!
    }

    static func cached(_ url: URL, _ body: Data, headers: [String: String] = headers) -> CachedURLResponse {
        CachedURLResponse(response: httpResponse(url, headers: headers), data: body)
    }

    /// At most `limit` requests for entries spread over all `count`, in random order.
    static func sample(of count: Int, limit: Int = 20_000, seed: UInt64 = 7) -> [URLRequest] {
        var generator = SeededGenerator(seed: seed)
        let numbers =
            count <= limit ? Array(0..<count) : (0..<limit).map { _ in Int.random(in: 0..<count, using: &generator) }
        return numbers.shuffled(using: &generator).map(request)
    }
}

extension DiskURLCache {
    /// A cache with `count` entries of one size on disk.
    static func filled(
        at directory: URL, count: Int, bodySize: Int, memoryCapacity: Int = 0, diskCapacity: Int = 64 << 30
    ) -> DiskURLCache {
        let cache = DiskURLCache(memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, directory: directory)
        let body = Content.body(bodySize)
        for number in 0..<count {
            let request = Content.request(number)
            cache.storeCachedResponse(Content.cached(request.url!, body), for: request)
        }
        cache.flush()
        return cache
    }
}

/// A directory that is removed when the value is released.
final class Scratch {
    let url: URL

    init(in parent: String) throws {
        url = URL(fileURLWithPath: parent).appendingPathComponent("DiskURLCacheBenchmarks-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    /// Waits until files can be created at the usual speed, at most five minutes. ext4 without a journal skips the
    /// inodes of recently deleted files one by one, so that after a mass deletion creating a file takes ten times as
    /// long, for every side.
    func settle() throws {
        let folder = folder("settle")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        var waited = 0
        while true {
            let start = Measure.nanoseconds()
            for number in 0..<100 {
                try RawFiles.write(Data(count: 100), to: Array("\(folder.path)/\(waited)-\(number)".utf8CString))
            }
            let each = Double(Measure.nanoseconds() - start) / 100_000
            if each < 50 || waited >= 300 {
                print("Before this section: \(waited) s until a create took \(each.short) µs.")
                return
            }
            sleep(10)
            waited += 10
        }
    }

    func folder(_ name: String) -> URL { url.appendingPathComponent(name, isDirectory: true) }
}
