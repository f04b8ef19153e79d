import CCallgrind
import DiskURLCache
import DiskURLCacheAdapters
import DiskURLCacheTesting
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

// One hot operation, a given number of times: what `.ci/check-counts` runs under callgrind and strace. Each one is done
// as a warm-up first: the first one makes types and finds symbols, and memory does not know all that was stored before
// the folder was listed. Only what comes between `beginCounting` and `endCounting` is counted. The program uses the
// library alone, so it builds quickly, and public names alone, so older versions of the library can be counted.

/// How many responses are stored before, and how many operations are done in a warm-up.
private let entries = 100
private let size = 4 << 10

/// Answers in the process, at once: what is left is the price of the library's own engine.
private struct Canned: DiskURLCache.Transport {
    let head: DiskURLCache.Head
    let body: Data

    func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
        if request["If-None-Match"] != nil {
            return receiver.receive(DiskURLCache.Head(status: 304, fields: head.fields))
        }
        receiver.receive(head)
        await receiver.receive(body)
    }
}

private enum Content {
    static let body = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    static func fields(_ cacheControl: String, hasValidators: Bool = true) -> [(name: String, value: String)] {
        [
            ("Accept-Ranges", "bytes"),
            ("Access-Control-Allow-Origin", "*"),
            ("Cache-Control", cacheControl),
            ("Content-Type", "application/json; charset=utf-8"),
            ("Date", date),
            ("ETag", "\"5d8c72a5edda8d6a\""),
            ("Last-Modified", "Fri, 20 Nov 2026 08:00:00 GMT"),
            ("Server", "example/1.0"),
            ("Strict-Transport-Security", "max-age=31536000; includeSubDomains"),
            ("Vary", "Accept-Encoding"),
            ("X-Content-Type-Options", "nosniff"),
            ("X-Request-Id", "0f8fad5b-d9cb-469f-a165-70867728950e"),
        ].filter { hasValidators || !["ETag", "Last-Modified"].contains($0.0) }
    }

    private static let date: String = {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(identifier: "GMT")
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: Date())
    }()

    static func request(_ number: Int) -> URLRequest {
        let url = "https://cdn.example.com/assets/v3/items/item-\(number).json?size=large&lang=en"
        var request = URLRequest(url: URL(string: url)!)
        request.setValue("gzip, deflate, br", forHTTPHeaderField: "Accept-Encoding")
        return request
    }

    static func cached(_ request: URLRequest, _ policy: URLCache.StoragePolicy = .allowed) -> CachedURLResponse {
        let fields = Dictionary(uniqueKeysWithValues: fields("public, max-age=86400").map { ($0.name, $0.value) })
        let response = HTTPURLResponse(
            url: request.url!, statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields)!
        return CachedURLResponse(response: response, data: body, userInfo: nil, storagePolicy: policy)
    }

    static func transport(_ cacheControl: String, hasValidators: Bool) -> Canned {
        let fields = fields(cacheControl, hasValidators: hasValidators)
        return Canned(head: DiskURLCache.Head(status: 200, fields: fields), body: body)
    }
}

/// Its clock stands still: heads are made anew each second, and how many seconds a run takes under callgrind is chance.
private func makeCache(
    memory: Int = 64 << 20, keys: DiskURLCache.KeyPolicy = .standard
) -> DiskURLCache {
    // Foundation makes its own cache when that is first asked for, which a cache of the library does within a second:
    // before the operations here, and not at some moment among them.
    _ = URLCache.shared
    return DiskURLCache.forTesting(clock: DiskURLCache.TestClock(date: Date())) { configuration in
        configuration.memoryCapacity = memory
        configuration.diskCapacity = 1 << 30
        configuration.keyPolicy = keys
        configuration.directory = scratch.appendingPathComponent("cache")
    }
}

/// From here to `endCounting`, callgrind counts the instructions of all threads. The two system calls are what
/// `.ci/check-counts` looks for in the list of strace.
private func beginCounting() {
    access("counted", F_OK)
    callgrindStart()
}

private func endCounting() {
    callgrindStop()
    access("counted", F_OK)
}

/// Does an operation `entries` times as a warm-up, and then `count` times, which are counted. Each time the operation
/// has the next number.
private func measure(_ cache: DiskURLCache, _ count: Int, _ operation: (Int) -> Void) {
    for number in 0..<entries { operation(number) }
    cache.flush()
    beginCounting()
    for number in entries..<entries + count { operation(number) }
    endCounting()
}

/// The same for an operation that waits.
private func measure(
    _ cache: DiskURLCache, _ count: Int, _ operation: @escaping @Sendable (Int) async throws -> Void
) {
    let done = DispatchSemaphore(value: 0)
    Task {
        do {
            for number in 0..<entries { try await operation(number) }
            cache.flush()
            beginCounting()
            for number in entries..<entries + count { try await operation(number) }
            endCounting()
        } catch {
            fail("\(error)")
        }
        done.signal()
    }
    done.wait()
}

private func filled(_ cache: DiskURLCache, _ count: Int = entries) -> [URLRequest] {
    let requests = (0..<count).map(Content.request)
    for request in requests { cache.storeCachedResponse(Content.cached(request), for: request) }
    cache.flush()
    return requests
}

/// `count` loads one after another by a transport that answers at once; of as many URLs, or of those that are stored.
private func load(_ count: Int, _ cacheControl: String, again: Bool = false, hasValidators: Bool = true) {
    let cache = makeCache()
    let transport = Content.transport(cacheControl, hasValidators: hasValidators)
    let requests = (0..<entries + count).map(Content.request)
    measure(cache, count) { number in
        let stream = try await cache.load(requests[again ? number % entries : number], through: transport)
        var bytes = 0
        for try await piece in stream { bytes += piece.count }
        guard bytes == size else { fail("\(bytes) bytes instead of \(size)") }
    }
}

private final class ConstantProtocol: URLProtocol {
    private static let response = Content.cached(Content.request(0)).response

    override class func canInit(with request: URLRequest) -> Bool { true }
    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        client?.urlProtocol(self, didReceive: Self.response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Content.body)
        client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}

/// Throws pieces away, and tells when a task has ended.
private final class Pieces: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    let ended = DispatchSemaphore(value: 0)

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {}

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error { fail("\(error)") }
        ended.signal()
    }
}

/// Loads of a session, one after another; by a completion handler if there is no delegate.
private func load(_ count: Int, in session: URLSession, _ cache: DiskURLCache, _ requests: [URLRequest]) {
    let delegate = session.delegate as? Pieces
    let ended = delegate?.ended ?? DispatchSemaphore(value: 0)
    measure(cache, count) { number in
        let request = requests[number % requests.count]
        let task =
            delegate == nil
            ? session.dataTask(with: request) { data, _, _ in
                if data?.count != size { fail("no answer") }
                ended.signal()
            } : session.dataTask(with: request)
        task.resume()
        ended.wait()
    }
}

/// Another process opens the folder, and stays until this one ends. `Process` of Foundation fails under valgrind.
private func beginOther() {
    let words: [String] = [CommandLine.arguments[0], "other", "0", scratch.path]
    var arguments = words.map { strdup($0) } + [nil]
    var environment: [UnsafeMutablePointer<CChar>?] = [nil]
    var process = pid_t()
    guard posix_spawn(&process, words[0], nil, nil, &arguments, &environment) == 0 else { fail("no other process") }
    while access(openedFile().path, F_OK) != 0 { usleep(1_000) }
}

/// The file that says that the other process has opened the folder.
private func openedFile() -> URL { scratch.appendingPathComponent("opened") }

/// A cache of which another process has the folder: it was there first, and is its owner.
private func makeGuest(memory: Int = 64 << 20) -> DiskURLCache {
    beginOther()
    return makeCache(memory: memory)
}

private func store(
    _ count: Int, in cache: DiskURLCache? = nil, keys: DiskURLCache.KeyPolicy = .standard, isAlone: Bool = true
) {
    let cache = cache ?? makeCache(memory: 0, keys: keys)
    _ = filled(cache)
    if !isAlone { beginOther() }
    let requests = (0..<entries + count).map { Content.request(entries + $0) }
    let responses = requests.map { Content.cached($0) }
    measure(cache, count) { cache.storeCachedResponse(responses[$0], for: requests[$0]) }
}

private func hit(_ count: Int, in cache: DiskURLCache) {
    let requests = filled(cache)
    measure(cache, count) { number in
        if cache.cachedResponse(for: requests[number % entries])?.data.count != size { fail("no hit") }
    }
}

private func remove(_ count: Int, in cache: DiskURLCache) {
    let requests = filled(cache, entries + count)
    measure(cache, count) { cache.removeCachedResponse(for: requests[$0]) }
}

private let operations: [String: (Int) -> Void] = [
    "memory-hit": { count in
        let cache = makeCache()
        let requests = filled(cache)
        measure(cache, count) { number in
            if cache.cachedResponse(for: requests[number % entries]) == nil { fail("no hit") }
        }
    },
    "miss": { count in
        let cache = makeCache()
        _ = filled(cache)
        let absent = (entries..<2 * entries).map(Content.request)
        measure(cache, count) { number in
            if cache.cachedResponse(for: absent[number % entries]) != nil { fail("a hit") }
        }
    },
    "disk-hit": { hit($0, in: makeCache(memory: 0)) },
    "store": { store($0) },
    // Under keys that are not the URLs, so that a record needs a SHA-256.
    "store-other-key": { store($0, keys: .standard.sortingQueryItems()) },
    // A refresh: memory has the response that is replaced.
    "store-again": { count in
        let cache = makeCache()
        let requests = filled(cache)
        let responses = requests.map { Content.cached($0) }
        measure(cache, count) { cache.storeCachedResponse(responses[$0 % entries], for: requests[$0 % entries]) }
    },
    "guest-miss": { count in
        let cache = makeGuest()
        _ = filled(cache)
        let absent = (entries..<2 * entries + count).map(Content.request)
        measure(cache, count) { number in
            if cache.cachedResponse(for: absent[number]) != nil { fail("a hit") }
        }
    },
    "guest-disk-hit": { hit($0, in: makeGuest(memory: 0)) },
    "guest-store": { store($0, in: makeGuest()) },
    "owner-among-others-store": { store($0, isAlone: false) },
    "guest-remove": { remove($0, in: makeGuest()) },
    "other": { _ in
        let cache = makeCache()
        // So that the others hear of it.
        _ = filled(cache, 1)
        let parent = getppid()
        _ = FileManager.default.createFile(atPath: openedFile().path, contents: nil)
        while getppid() == parent { usleep(10_000) }
        withExtendedLifetime(cache) {}
    },
    "store-memory-only": { count in
        let cache = makeCache()
        _ = filled(cache)
        let requests = (0..<entries + count).map { Content.request(entries + $0) }
        let responses = requests.map { Content.cached($0, .allowedInMemoryOnly) }
        measure(cache, count) { cache.storeCachedResponse(responses[$0], for: requests[$0]) }
    },
    "remove": { remove($0, in: makeCache()) },
    "data-from-memory": { count in
        let cache = makeCache()
        let requests = filled(cache)
        measure(cache, count) { number in
            let data = try await cache.data(for: requests[number % entries]).data
            if data.count != size { fail("no hit") }
        }
    },
    "session-hit": { count in
        let cache = makeCache()
        load(count, in: cache.makeSession(configuration: .ephemeral), cache, filled(cache))
    },
    "session-hit-delegate": { count in
        let cache = makeCache()
        load(count, in: cache.makeSession(configuration: .ephemeral, delegate: Pieces()), cache, filled(cache))
    },
    "session-hit-async": { count in
        let cache = makeCache()
        let session = cache.makeSession(configuration: .ephemeral)
        let requests = filled(cache)
        measure(cache, count) { number in
            if try await session.data(for: requests[number % entries]).0.count != size { fail("no hit") }
        }
    },
    // The price of a session itself: a protocol that answers from its own memory.
    "session-constant": { count in
        let cache = makeCache()
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.protocolClasses = [ConstantProtocol.self]
        load(count, in: URLSession(configuration: configuration), cache, (0..<entries).map(Content.request))
    },
    "load-not-stored": { load($0, "no-store") },
    "load-stored": { load($0, "max-age=86400") },
    "load-replaced": { load($0, "max-age=0", again: true, hasValidators: false) },
    "load-revalidated": { load($0, "max-age=0", again: true) },
]

private func fail(_ message: String) -> Never {
    print(message)
    exit(1)
}

if CommandLine.arguments.dropFirst().first == "peak" {
    PeakMemory.measure()
    exit(0)
}
guard CommandLine.arguments.count == 4, let operation = operations[CommandLine.arguments[1]],
    let count = Int(CommandLine.arguments[2])
else {
    fail("usage: Counts \(operations.keys.sorted().joined(separator: "|")) COUNT SCRATCH-FOLDER")
}
private let scratch = URL(fileURLWithPath: CommandLine.arguments[3], isDirectory: true)
operation(count)
