import DiskURLCache
import Foundation
import RedisStorage

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// Measures a hit of 16 KB in memory, on disk and in Redis, on a server that runs already:
//
//     swift run -c release --package-path Integrations RedisWorker measure PORT
//
// Without `measure`: one of several processes that use the same entries. It stores, reads and removes at random, and
// checks each answer. Arguments: port, prefix, number of this process, rounds. Prints how many answers it got; ends
// with 1 at a wrong one.

let arguments = CommandLine.arguments
if arguments.count == 3, arguments[1] == "measure", let port = Int(arguments[2]) {
    try measure(port)
    exit(0)
}
guard arguments.count == 5, let port = Int(arguments[1]), let rounds = Int(arguments[4]) else { exit(64) }
let process = arguments[3]

var settings = RedisStorage.Configuration(.host("127.0.0.1", port: port), prefix: arguments[2])
settings.timeout = 20
settings.connectTimeout = 20
settings.onFailure = { failure in FileHandle.standardError.write(Data("\(failure.code): \(failure)\n".utf8)) }
// Without a memory layer, so that each answer comes from Redis.
let cache = DiskURLCache(configuration: .init(memoryCapacity: 0, redis: try RedisStorage(settings)))

/// A body that contains its key, its writer, and a mark at its end.
func body(_ key: Int, _ round: Int) -> Data {
    let mark = "\(key)|\(process)|\(round)|"
    return Data((mark + String(repeating: "x", count: (round % 7) * 3_000) + "|" + mark).utf8)
}

func isWhole(_ data: Data, _ key: Int) -> Bool {
    let text = String(decoding: data, as: UTF8.self)
    guard let end = text.range(of: "|x")?.lowerBound ?? text.range(of: "||")?.lowerBound else { return false }
    let mark = text[...end]
    return mark.hasPrefix("\(key)|") && text.hasSuffix("|" + mark)
        && text.dropFirst(mark.count).dropLast(mark.count + 1).allSatisfy { $0 == "x" }
}

var random = SystemRandomNumberGenerator()
var answers = 0
for round in 0..<rounds {
    let key = Int.random(in: 0..<8, using: &random)
    var request = URLRequest(url: URL(string: "https://example.com/\(key)")!)
    switch Int.random(in: 0..<20, using: &random) {
    case 0: cache.removeCachedResponse(for: request)
    case 1: cache.removeCachedResponses(tag: "\(key % 2)")
    case 2..<8:
        request.cacheOptions = DiskURLCache.Options(tags: ["\(key % 2)"])
        let response = HTTPURLResponse(
            url: request.url!, statusCode: 200, httpVersion: nil, headerFields: ["Cache-Control": "max-age=600"])!
        cache.storeCachedResponse(CachedURLResponse(response: response, data: body(key, round)), for: request)
        cache.flush()
    default:
        guard let found = cache.cachedResponse(for: request) else { continue }
        guard isWhole(found.data, key) else {
            print(
                "A wrong answer for \(key): \(found.data.count) bytes, \(String(decoding: found.data.prefix(40), as: UTF8.self))"
            )
            exit(1)
        }
        answers += 1
    }
}
print(answers)

/// Medians, in turns.
func measure(_ port: Int) throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("measure-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(at: folder) }
    var settings = RedisStorage.Configuration(.host("127.0.0.1", port: port), prefix: "measure")
    // Long enough for a busy machine.
    settings.timeout = 20
    settings.connectTimeout = 20
    let redis = try RedisStorage(settings)
    let caches = [
        (
            "memory",
            DiskURLCache(memoryCapacity: 16 << 20, diskCapacity: 0, directory: folder.appendingPathComponent("none"))
        ),
        ("disk", DiskURLCache(memoryCapacity: 0, diskCapacity: 64 << 20, directory: folder)),
        ("Redis", DiskURLCache(configuration: .init(memoryCapacity: 0, redis: redis))),
    ]
    let request = URLRequest(url: URL(string: "https://example.com/measured")!)
    let fields = ["Cache-Control": "max-age=3600", "Content-Type": "image/png", "ETag": "\"0123456789\""]
    let response = HTTPURLResponse(url: request.url!, statusCode: 200, httpVersion: nil, headerFields: fields)!
    var times = [[Double]](repeating: [], count: caches.count + 1)
    func time(_ index: Int, _ body: () -> Void) {
        let start = DispatchTime.now().uptimeNanoseconds
        for _ in 0..<100 { body() }
        times[index].append(Double(DispatchTime.now().uptimeNanoseconds - start) / 100_000)
    }
    for (_, cache) in caches {
        cache.storeCachedResponse(
            CachedURLResponse(response: response, data: Data(repeating: 7, count: 16 << 10)), for: request)
        cache.flush()
    }
    let missing = URLRequest(url: URL(string: "https://example.com/missing")!)
    for _ in 0..<40 {
        for (index, (name, cache)) in caches.enumerated() {
            time(index) {
                guard cache.cachedResponse(for: request)?.data.count == 16 << 10 else { fatalError("no hit: \(name)") }
            }
        }
        time(caches.count) { if caches[2].1.cachedResponse(for: missing) != nil { fatalError("a hit") } }
    }
    for (name, times) in zip(caches.map(\.0) + ["miss in Redis"], times) {
        print("\(name): \(String(format: "%.1f", times.sorted()[times.count / 2])) µs")
    }
    caches[2].1.removeAllCachedResponses()
    caches[2].1.flush()
}
