import DiskURLCache
import DiskURLCacheAdapters
import DiskURLCacheTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// The methods of an app's storage may wait for a task, such as a call of an `async` client. On the threads of Swift's
/// pool, of which there is one a core, that would stop every task of the process.
@Suite(.fewAtATime) struct StorageThreadsTests {
    /// Writes down which methods a task has called.
    private final class NotingStorage: DiskURLCache.EntryStorage {
        private let storage = DictionaryStorage(capacity: 1 << 20)
        private let calls = Guarded((all: Set<String>(), inTasks: [String]()))

        var all: Set<String> { calls.withLock { $0.all } }
        var inTasks: [String] { calls.withLock { $0.inTasks } }

        private func note(_ method: String = #function) {
            let isInTask = withUnsafeCurrentTask { $0 != nil }
            calls.withLock { calls in
                calls.all.insert(method)
                if isInTask { calls.inTasks.append(method) }
            }
        }

        var isShared: Bool { true }

        func entries(named name: String) -> [DiskURLCache.Entry]? {
            note()
            return storage.entries(named: name)
        }

        func store(_ entry: DiskURLCache.Entry, named name: String) {
            note()
            storage.store(entry, named: name)
        }

        func removeEntries(matching criteria: DiskURLCache.Criteria) {
            note()
            storage.removeEntries(matching: criteria)
        }

        func removalsByOthers() -> [String]? {
            note()
            return []
        }

        func flush() {}
    }

    private let transport = ClosureTransport { request, exchange in
        var fields = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
        var status = 200
        switch request.url?.path {
        case "/refreshed": fields["Cache-Control"] = "max-age=60, stale-while-revalidate=600"
        case "/from": (status, fields["Location"]) = (302, "/a")
        case "/part": (status, fields["Content-Range"]) = (206, "bytes 0-3/8")
        default: if request.value(forHTTPHeaderField: "If-None-Match") != nil { status = 304 }
        }
        exchange.head(status, fields)
        if status != 304 { await exchange.piece("body") }
    }

    @Test(arguments: [0, 1 << 20]) func noMethodIsCalledInATask(memory: Int) async throws {
        let storage = NotingStorage()
        let clock = ManualClock()
        let cache = DiskURLCache.forTesting(clock: clock.testClock) { settings in
            settings.memoryCapacity = memory
            settings.diskStorage = storage
        }
        func load(_ path: String, _ change: (inout URLRequest) -> Void = { _ in }) async throws {
            var request = Responses.request(path)
            change(&request)
            _ = try await cache.load(request, through: transport).pieces()
        }
        for _ in 0..<2 {
            for path in ["/a", "/from", "/refreshed"] { try await load(path) }
        }
        try await load("/a") { $0.cacheOptions = .init(tags: ["tag"]) }
        try await load("/part") { $0.setValue("bytes=0-3", forHTTPHeaderField: "Range") }
        clock.advance(by: 100)
        let count = transport.requests.count
        try await load("/refreshed")
        await eventually("the refresh") { transport.requests.count > count }
        for path in ["/a", "/from"] { try await load(path) }
        for method in ["PUT", "DELETE"] { try await load("/a") { $0.httpMethod = method } }
        await cache.perform { $0.flush() }
        #expect(storage.all.count == 4)
        #expect(storage.inTasks == [])
    }
}
