import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One hot operation, a given number of times: what `instructions.sh` runs under callgrind. The difference between two
/// counts is the cost of the operation without the set-up.
enum Repeat {
    private static let entries = 100
    private static let size = 4 << 10

    static func run(_ arguments: [String]) throws {
        guard arguments.count == 2, let count = Int(arguments[1]), let operation = operations[arguments[0]] else {
            print("usage: Benchmarks \(Child.flag) repeat \(operations.keys.sorted().joined(separator: "|")) COUNT")
            exit(64)
        }
        try operation(count, try Scratch(in: FileManager.default.temporaryDirectory.path))
    }

    private static let operations: [String: @Sendable (Int, Scratch) throws -> Void] = [
        "memory-hit": { count, scratch in
            let (cache, requests) = filled(scratch, memory: 64 << 20)
            for number in 0..<count { consume(cache.cachedResponse(for: requests[number % entries])) }
        },
        "memory-miss": { count, scratch in
            let (cache, _) = filled(scratch, memory: 64 << 20)
            let absent = (entries..<2 * entries).map(Content.request)
            for number in 0..<count { consume(cache.cachedResponse(for: absent[number % entries])) }
        },
        "disk-hit": { count, scratch in
            let (cache, requests) = filled(scratch, memory: 0)
            for number in 0..<count { consume(cache.cachedResponse(for: requests[number % entries])?.data) }
        },
        "disk-hit-with-response": { count, scratch in
            let (cache, requests) = filled(scratch, memory: 0)
            for number in 0..<count { DiskHitRows.read(cache, requests[number % entries]) }
        },
        "store-memory": { count, scratch in
            let (cache, requests) = filled(scratch, memory: 64 << 20, disk: 0)
            let responses = requests.map { Content.cached($0.url!, Content.body(size)) }
            for number in 0..<count {
                cache.storeCachedResponse(responses[number % entries], for: requests[number % entries])
            }
        },
        "store-drained": { count, scratch in
            // All with one response object: the cost is that of the stores.
            let cache = DiskURLCache(memoryCapacity: 0, diskCapacity: 8 << 30, directory: scratch.folder("cache"))
            let response = Content.cached(Content.url(0), Content.body(size))
            for number in 0..<count { cache.storeCachedResponse(response, for: Content.request(number)) }
            cache.flush()
        },
        "key": { count, scratch in
            // The same work as a miss, without a disk behind it.
            let cache = DiskURLCache(memoryCapacity: 0, diskCapacity: 0, directory: scratch.folder("cache"))
            let requests = (0..<entries).map(Content.request)
            for number in 0..<count { consume(cache.contains(requests[number % entries])) }
        },
        "session-hit": { count, scratch in
            let client = Client.cached(scratch.folder("cache"))
            let requests = (0..<entries).map(Content.request)
            for request in requests {
                client.cache!.storeCachedResponse(Content.cached(request.url!, Content.body(size)), for: request)
            }
            client.cache!.flush()
            for number in 0..<count { try client.load([requests[number % entries]], expecting: size) }
        },
        "session-constant": { count, _ in
            let client = Client.constant()
            let requests = (0..<entries).map(Content.request)
            for number in 0..<count { try client.load([requests[number % entries]], expecting: 16 << 10) }
        },
        "direct-memory-hit": { count, scratch in
            let (cache, requests) = filled(scratch, memory: 64 << 20)
            try blocking {
                for number in 0..<count { consume(try await cache.data(for: requests[number % entries]).response) }
            }
        },
        "first-loads-at-once": { count, scratch in try firstLoads(count, Client.cached(scratch.folder("cache"))) },
        "first-loads-at-once-stock": { count, _ in try firstLoads(count, Client.stock()) },
    ]

    /// Each URL asked once, 32 at a time, none of them stored.
    private static func firstLoads(_ count: Int, _ client: Client) throws {
        let origin = try OriginProcess()
        for start in stride(from: 0, to: count, by: 32) {
            let requests = (start..<start + 32).map { origin.request(.noStore, bytes: size, $0, for: client.name) }
            try client.load(requests, expecting: size)
        }
    }

    private static func filled(_ scratch: Scratch, memory: Int, disk: Int = 64 << 20) -> (DiskURLCache, [URLRequest]) {
        let cache = DiskURLCache.filled(
            at: scratch.folder("cache"), count: entries, bodySize: size, memoryCapacity: memory, diskCapacity: disk)
        return (cache, (0..<entries).map(Content.request))
    }
}
