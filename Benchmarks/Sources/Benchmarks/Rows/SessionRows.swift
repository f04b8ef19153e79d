import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A hit as an app sees it: a data task through `URLSession` and the loader.
enum SessionRows {
    static func run(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let origin = try LoopbackOrigin(body: Content.body(16 << 10))
        defer { origin.close() }
        let cache = DiskURLCache(
            memoryCapacity: 64 << 20, diskCapacity: 64 << 20, directory: scratch.folder("session"))
        let cached = URLSessionConfiguration.default
        cache.attach(to: cached)
        let constant = URLSessionConfiguration.default
        constant.urlCache = nil
        constant.protocolClasses = [ConstantProtocol.self]
        let plain = URLSessionConfiguration.default
        plain.urlCache = nil
        let sessions = [
            ("DiskURLCache", URLSession(configuration: cached)),
            ("constant URLProtocol", URLSession(configuration: constant)),
            ("uncached loopback load", URLSession(configuration: plain)),
        ]
        defer { for (_, session) in sessions { session.invalidateAndCancel() } }
        let urls = (0..<32).map { origin.url.appendingPathComponent("item-\($0).bin") }
        for url in urls { try load([url], with: sessions[0].1) }

        let oneByOne = try Measure.alternately(
            rounds: options.rounds(400),
            sessions.map { name, session in
                Side(name) { try load([urls[$0 % urls.count]], with: session) }
            })
        report.add(Row("URLSession hit, 16 KB, one at a time", oneByOne, targets: [1.1, 0.12]))
        let atOnce = try Measure.alternately(
            rounds: options.rounds(100),
            sessions.map { name, session in
                Side(name) { _ in try load(urls, with: session) }
            })
        report.add(Row("URLSession hits, 16 KB, 32 at once", atOnce, targets: [1.1, 0.12]))
    }

    struct Failure: Error {}

    private static func load(_ urls: [URL], with session: URLSession) throws {
        let group = DispatchGroup()
        let failures = FailureCount()
        for url in urls {
            group.enter()
            session.dataTask(with: url) { data, _, _ in
                if data?.count != 16 << 10 { failures.add() }
                group.leave()
            }.resume()
        }
        group.wait()
        guard failures.isZero else { throw Failure() }
    }

    private final class FailureCount: @unchecked Sendable {
        // @unchecked: `count` is reached only under the lock.
        private let lock = NSLock()
        private var count = 0

        func add() { lock.withLock { count += 1 } }
        var isZero: Bool { lock.withLock { count == 0 } }
    }
}
