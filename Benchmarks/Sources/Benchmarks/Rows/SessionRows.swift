import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Stored responses, loaded as an app does: by a data task through `URLSession` and the loader, and by the cache's own
/// call.
enum SessionRows {
    static let groups = [
        Group("hits", run: hits), Group("304", run: revalidations),
        Group("data(for:), memory", run: directMemoryHit), Group("data(for:), disk", run: directDiskHit),
    ]

    private static let size = 16 << 10

    private static func hits(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let origin = try OriginProcess()
        let requests = (0..<32).map { origin.request(.stored, bytes: size, $0) }
        let peers = [Client.constant(), .stock()]
        for (layer, memoryCapacity) in [("memory", 64 << 20), ("disk", 0)] {
            let ours = Client.cached(scratch.folder("session-\(layer)"), memoryCapacity: memoryCapacity)
            try ours.load(requests, expecting: size)
            ours.cache!.flush()
            let before = ours.cache!.statistics
            let clients = [ours] + peers
            let rounds = options.rounds(400)
            let oneByOne = try Measure.alternately(
                rounds: rounds,
                clients.map { client in
                    client.side(expecting: size) { requests[$0 % requests.count] }
                })
            report.add(Row("URLSession \(layer) hit, 16 KB", oneByOne, targets: [1.05]))
            let atOnce = try Measure.alternately(
                rounds: options.rounds(100),
                clients.map { client in
                    Side(client.name) { _ in try client.load(requests, expecting: size) }
                })
            report.add(Row("URLSession \(layer) hits, 16 KB, 32 at once", atOnce, targets: [1.1]))
            let after = ours.cache!.statistics
            let hits =
                layer == "memory" ? after.memoryHits - before.memoryHits : after.diskHits - before.diskHits
            try expect(hits > rounds, "\(hits) \(layer) hits in \(rounds) rounds")
        }
    }

    /// Our session revalidates its stored response; the stock session is given the same `If-None-Match` and gets the
    /// plain 304.
    private static func revalidations(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let origin = try OriginProcess()
        for (size, target) in [(16 << 10, 1.1), (1 << 20, nil)] as [(Int, Double?)] {
            let ours = Client.cached(scratch.folder("revalidated-\(size)"))
            let stock = Client.stock()
            let requests = (0..<32).map { origin.request(.revalidated, bytes: size, $0) }
            let conditional = requests.map { request in
                var request = request
                request.setValue(Content.entityTag, forHTTPHeaderField: "If-None-Match")
                return request
            }
            for request in requests { try ours.load([request], expecting: size) }
            let flush = { ours.cache!.flush() }
            flush()
            let rounds = options.rounds(300)
            let samples = try Measure.alternately(
                rounds: rounds,
                [
                    ours.side(prepare: flush, expecting: size) { requests[$0 % requests.count] },
                    stock.side("stock, answered by 304", prepare: flush, expecting: 0) {
                        conditional[$0 % requests.count]
                    },
                ])
            let confirmed = ours.cache!.statistics.revalidations
            try expect(confirmed >= rounds, "\(confirmed) revalidations in \(rounds) rounds")
            report.add(Row("304 revalidation, \(FirstLoadRows.name(size))", samples, targets: [target]))
        }
    }

    private static func directMemoryHit(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let (cache, request) = filled(scratch.folder("direct-memory"), memoryCapacity: 64 << 20)
        let samples = try Measure.alternately(
            rounds: options.rounds(200),
            [
                .async("data(for:)", batch: 100, input: request) { try await direct(cache, $0) },
                Side("cachedResponse(for:), response used", batch: 100, input: request) { use(cache, $0) },
            ])
        try expect(cache.statistics.misses == 0, "\(cache.statistics.misses) misses")
        report.add(Row("data(for:) on a memory hit, 16 KB", samples, targets: [2]))
    }

    private static func directDiskHit(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let (cache, request) = filled(scratch.folder("direct-disk"), memoryCapacity: 0)
        let queue = DispatchQueue(label: "hop", attributes: .concurrent)
        let samples = try Measure.alternately(
            rounds: options.rounds(1_000),
            [
                .async("data(for:)", input: request) { try await direct(cache, $0) },
                // From the call in a task to the answer on the queue's thread.
                Side(name: "one hop and cachedResponse(for:)") { numbers in
                    let request = request(numbers.lowerBound)
                    return try blocking {
                        let start = Measure.nanoseconds()
                        return await withCheckedContinuation { continuation in
                            queue.async {
                                use(cache, request)
                                continuation.resume(returning: Measure.nanoseconds() - start)
                            }
                        }
                    }
                },
                .async("a hop there and back and cachedResponse(for:)", input: request) { request in
                    await withCheckedContinuation { continuation in
                        queue.async {
                            use(cache, request)
                            continuation.resume()
                        }
                    }
                },
                Side("cachedResponse(for:), response used", input: request) { use(cache, $0) },
            ])
        try expect(cache.statistics.memoryHits == 0, "hits in memory")
        report.add(Row("data(for:) on a disk hit, 16 KB", samples, targets: [1]))
    }

    private static func filled(
        _ directory: URL, memoryCapacity: Int
    ) -> (DiskURLCache, request: (Int) -> URLRequest) {
        let count = 200
        let cache = DiskURLCache.filled(
            at: directory, count: count, bodySize: size, memoryCapacity: memoryCapacity, diskCapacity: 64 << 20)
        let requests = (0..<count).map(Content.request)
        return (cache, { requests[$0 % count] })
    }

    private static func direct(_ cache: DiskURLCache, _ request: URLRequest) async throws {
        let answer = try await cache.data(for: request)
        try expect(answer.data.count == size, "an answer of \(answer.data.count) bytes")
        consume(answer.response)
    }

    private static func use(_ cache: DiskURLCache, _ request: URLRequest) {
        let found = cache.cachedResponse(for: request)
        consume(found?.response)
        consume(found?.data)
    }

    private static func expect(_ condition: Bool, _ message: @autoclosure () -> String) throws {
        if !condition { throw Child.Failure(message: message()) }
    }
}
