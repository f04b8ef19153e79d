import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// One hot operation, a given number of times: what `instructions.sh` runs under callgrind. The difference between two
// counts is the cost of the operation without the set-up.

let arguments = CommandLine.arguments
guard arguments.count == 3, let count = Int(arguments[2]) else {
    print(
        "usage: HotRow memory-hit|memory-miss|disk-hit|disk-hit-with-response|disk-hit-large|store-memory|store-drained|open|rebuild|key|session-hit|session-constant COUNT"
    )
    exit(64)
}
let directory = FileManager.default.temporaryDirectory.appendingPathComponent("HotRow-\(UUID().uuidString)")
defer { try? FileManager.default.removeItem(at: directory) }

let entries = 100
let headers = [
    "Content-Type": "application/json; charset=utf-8", "Cache-Control": "max-age=86400",
    "Date": "Sat, 21 Nov 2026 10:00:00 GMT", "ETag": "\"5d8c72a5edda8d6a\"",
    "Last-Modified": "Fri, 20 Nov 2026 08:00:00 GMT", "Server": "example/1.0",
    "X-Request-Id": "0f8fad5b-d9cb-469f-a165-70867728950e", "Accept-Ranges": "bytes",
]

func request(_ number: Int) -> URLRequest {
    URLRequest(url: URL(string: "https://cdn.example.com/assets/v3/items/item-\(number).json?size=large")!)
}

func response(for request: URLRequest, bodySize: Int) -> CachedURLResponse {
    let head = HTTPURLResponse(url: request.url!, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: headers)!
    return CachedURLResponse(response: head, data: Data(repeating: 7, count: bodySize))
}

func cache(memory: Int, disk: Int) -> DiskURLCache {
    DiskURLCache(memoryCapacity: memory, diskCapacity: disk, directory: directory)
}

func filled(_ cache: DiskURLCache) -> [URLRequest] {
    let requests = (0..<entries).map(request)
    for request in requests { cache.storeCachedResponse(response(for: request, bodySize: 4 << 10), for: request) }
    cache.flush()
    return requests
}

/// Fills a cache of its own, all with one response object: the cost is that of the stores.
func storeAndFlush(_ count: Int, bodySize: Int) {
    let cache = cache(memory: 0, disk: 8 << 30)
    let body = Data(repeating: 7, count: bodySize)
    let head = response(for: request(0), bodySize: 0).response
    for number in 0..<count {
        cache.storeCachedResponse(CachedURLResponse(response: head, data: body), for: request(number))
    }
    cache.flush()
}

/// The floor of a load: a protocol that has its answer ready.
final class ConstantProtocol: URLProtocol {
    private static let body = Data(repeating: 7, count: 4 << 10)

    override class func canInit(with request: URLRequest) -> Bool { true }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        let head = HTTPURLResponse(
            url: request.url!, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: headers)!
        client?.urlProtocol(self, didReceive: head, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Self.body)
        client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}

func load(_ requests: [URLRequest], _ count: Int, with session: URLSession) {
    for number in 0..<count {
        let done = DispatchSemaphore(value: 0)
        session.dataTask(with: requests[number % entries]) { data, _, _ in
            precondition(data?.count == 4 << 10)
            done.signal()
        }.resume()
        done.wait()
    }
}

@inline(never)
func consume<Value>(_ value: Value) {}

switch arguments[1] {
case "memory-hit":
    let cache = cache(memory: 64 << 20, disk: 0)
    let requests = filled(cache)
    for number in 0..<count { consume(cache.cachedResponse(for: requests[number % entries])) }
case "memory-miss":
    let cache = cache(memory: 64 << 20, disk: 64 << 20)
    _ = filled(cache)
    let absent = (entries..<2 * entries).map(request)
    for number in 0..<count { consume(cache.cachedResponse(for: absent[number % entries])) }
case "disk-hit":
    let cache = cache(memory: 0, disk: 64 << 20)
    let requests = filled(cache)
    for number in 0..<count { consume(cache.cachedResponse(for: requests[number % entries])?.data) }
case "disk-hit-with-response":
    let cache = cache(memory: 0, disk: 64 << 20)
    let requests = filled(cache)
    for number in 0..<count { consume(cache.cachedResponse(for: requests[number % entries])?.response) }
case "store-memory":
    let cache = cache(memory: 64 << 20, disk: 0)
    let requests = filled(cache)
    let responses = requests.map { response(for: $0, bodySize: 4 << 10) }
    for number in 0..<count { cache.storeCachedResponse(responses[number % entries], for: requests[number % entries]) }
case "disk-hit-large":
    let cache = cache(memory: 0, disk: 64 << 20)
    let request = request(0)
    cache.storeCachedResponse(response(for: request, bodySize: 1 << 20), for: request)
    cache.flush()
    for _ in 0..<count { consume(cache.cachedResponse(for: request)?.data) }
case "open":
    // One entry for each count, so that the difference between two counts is the cost of an entry.
    storeAndFlush(count, bodySize: 1)
    for _ in 0..<10 { consume(cache(memory: 0, disk: 8 << 30).currentDiskUsage) }
case "rebuild":
    storeAndFlush(count, bodySize: 1)
    for _ in 0..<10 {
        for name in ["index.plist", "index.journal"] { unlink(directory.appendingPathComponent(name).path) }
        consume(cache(memory: 0, disk: 8 << 30).currentDiskUsage)
    }
case "store-drained":
    storeAndFlush(count, bodySize: 4 << 10)
case "key":
    // The same work as a miss, without a disk behind it.
    let cache = cache(memory: 0, disk: 0)
    let requests = (0..<entries).map(request)
    for number in 0..<count { consume(cache.contains(requests[number % entries])) }
case "session-hit":
    let cache = cache(memory: 64 << 20, disk: 0)
    let requests = filled(cache)
    let configuration = URLSessionConfiguration.default
    cache.attach(to: configuration)
    load(requests, count, with: URLSession(configuration: configuration))
case "session-constant":
    let configuration = URLSessionConfiguration.default
    configuration.urlCache = nil
    configuration.protocolClasses = [ConstantProtocol.self]
    load((0..<entries).map(request), count, with: URLSession(configuration: configuration))
default:
    print("unknown row \(arguments[1])")
    exit(64)
}
