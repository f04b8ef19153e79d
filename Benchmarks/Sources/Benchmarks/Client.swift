import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// How an app asks a session.
enum Delivery: String, CaseIterable {
    case handler = "completion handler"
    case async
    case delegate
}

/// Two sessions with the same configuration, one without and one with a delegate. A load waits for the answer and
/// checks its length.
final class Client: Sendable {
    struct Failure: Error {
        var received: Int
        var expected: Int
        var error: (any Error)?
    }

    let name: String
    let session: URLSession
    private let delegateSession: URLSession
    /// nil for stock.
    let cache: DiskURLCache?
    private let delegate = Delegate()

    private init(_ name: String, _ configuration: URLSessionConfiguration, cache: DiskURLCache? = nil) {
        self.name = name
        self.cache = cache
        session = URLSession(configuration: configuration)
        delegateSession = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
    }

    static func cached(_ directory: URL, memoryCapacity: Int = 64 << 20, diskCapacity: Int = 16 << 30) -> Client {
        let cache = DiskURLCache(
            memoryCapacity: memoryCapacity, diskCapacity: diskCapacity, directory: directory)
        let configuration = URLSessionConfiguration.default
        cache.attach(to: configuration)
        return Client("DiskURLCache", configuration, cache: cache)
    }

    /// URLSession at its fastest: without a cache, so that it looks nothing up.
    static func stock() -> Client {
        let configuration = URLSessionConfiguration.default
        configuration.urlCache = nil
        return Client("stock", configuration)
    }

    static func stock(withCacheAt directory: URL) -> Client {
        let configuration = URLSessionConfiguration.default
        configuration.urlCache = URLCache(memoryCapacity: 4 << 20, diskCapacity: 20 << 20, diskPath: directory.path)
        return Client("stock with URLCache", configuration)
    }

    static func constant() -> Client {
        let configuration = URLSessionConfiguration.default
        configuration.urlCache = nil
        configuration.protocolClasses = [ConstantProtocol.self]
        return Client("constant URLProtocol", configuration)
    }

    deinit {
        session.invalidateAndCancel()
        delegateSession.invalidateAndCancel()
    }

    /// One load at a time by this delivery. `prepare` is not timed.
    func side(
        _ name: String? = nil, by delivery: Delivery = .handler,
        prepare: @escaping () throws -> Void = {},
        expecting bytes: Int, request: @escaping (Int) -> URLRequest
    ) -> Side {
        let name = name ?? self.name
        switch delivery {
        case .handler:
            return Side(name, prepare: prepare, input: request) { [self] in try load([$0], expecting: bytes) }
        case .delegate:
            return Side(name, prepare: prepare, input: request) { [self] in
                try loadByDelegate($0, expecting: bytes)
            }
        case .async:
            return .async(name, prepare: prepare, input: request) { [self] request in
                let (data, _) = try await session.data(for: request)
                guard data.count == bytes else { throw Failure(received: data.count, expected: bytes) }
            }
        }
    }

    /// Loads by completion handler, all started at once.
    func load(_ requests: [URLRequest], expecting bytes: Int) throws {
        let waiting = Waiting(expected: bytes)
        for request in requests {
            waiting.enter()
            session.dataTask(with: request) { data, _, error in waiting.leave(data?.count ?? 0, error) }.resume()
        }
        try waiting.wait()
    }

    func loadByDelegate(_ request: URLRequest, expecting bytes: Int) throws {
        let waiting = Waiting(expected: bytes)
        waiting.enter()
        let task = delegateSession.dataTask(with: request)
        delegate.await(task, waiting)
        task.resume()
        try waiting.wait()
    }

    func upload(_ body: Data, with request: URLRequest, expecting bytes: Int) throws {
        let waiting = Waiting(expected: bytes)
        waiting.enter()
        session.uploadTask(with: request, from: body) { data, _, error in waiting.leave(data?.count ?? 0, error) }
            .resume()
        try waiting.wait()
    }

    func download(_ request: URLRequest, expecting bytes: Int) throws {
        let waiting = Waiting(expected: bytes)
        waiting.enter()
        session.downloadTask(with: request) { url, _, error in
            var status = stat()
            waiting.leave(url.map { stat($0.path, &status) == 0 } == true ? Int(status.st_size) : 0, error)
        }.resume()
        try waiting.wait()
    }

    /// Loads that a thread waits for.
    private final class Waiting: @unchecked Sendable {
        // @unchecked: `failure` is written under the lock and read when all have left.
        private let group = DispatchGroup()
        private let lock = NSLock()
        private let expected: Int
        private var failure: Failure?

        init(expected: Int) {
            self.expected = expected
        }

        func enter() { group.enter() }

        func leave(_ received: Int, _ error: (any Error)?) {
            if received != expected || error != nil {
                lock.withLock { failure = Failure(received: received, expected: expected, error: error) }
            }
            group.leave()
        }

        func wait() throws {
            group.wait()
            if let failure { throw failure }
        }
    }

    /// Counts the bytes of delegate tasks and keeps none.
    private final class Delegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        // @unchecked: `loads` is reached only under the lock.
        private let lock = NSLock()
        private var loads: [Int: (waiting: Waiting, received: Int)] = [:]

        func await(_ task: URLSessionTask, _ waiting: Waiting) {
            lock.withLock { loads[task.taskIdentifier] = (waiting, 0) }
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            lock.withLock { loads[dataTask.taskIdentifier]?.received += data.count }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            let load = lock.withLock { loads.removeValue(forKey: task.taskIdentifier) }
            load?.waiting.leave(load?.received ?? 0, error)
        }
    }
}
