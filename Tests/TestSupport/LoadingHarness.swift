import DiskURLCache
import DiskURLCacheTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A cache in a scratch directory and a session attached to it.
public final class LoadingHarness: Sendable {
    public let clock = ManualClock()
    public let scratch: ScratchDirectory
    public let cache: DiskURLCache
    public let session: URLSession

    public init(
        delegate: (any URLSessionDelegate)? = nil, memoryCapacity: Int = 64 << 20, directory: ScratchDirectory? = nil,
        clock: ManualClock? = nil, configure: (inout DiskURLCache.Configuration) -> Void = { _ in },
        session configureSession: (URLSessionConfiguration) -> Void = { _ in }
    ) throws {
        scratch = try directory ?? ScratchDirectory("loading")
        let folder = scratch.appending("cache")
        cache = DiskURLCache.forTesting(clock: (clock ?? self.clock).testClock) { settings in
            (settings.memoryCapacity, settings.diskCapacity) = (memoryCapacity, 256 << 20)
            settings.directory = folder
            configure(&settings)
        }
        session = Self.session(of: cache, delegate: delegate, configureSession)
    }

    public static func session(
        of cache: DiskURLCache, delegate: (any URLSessionDelegate)? = nil,
        _ configure: (URLSessionConfiguration) -> Void = { _ in }
    ) -> URLSession {
        let configuration = URLSessionConfiguration.ephemeral.patient
        configure(configuration)
        return cache.makeSession(configuration: configuration, delegate: delegate)
    }

    deinit {
        session.invalidateAndCancel()
    }

    @discardableResult
    public func load(
        _ url: URL, _ fields: [String: String] = [:], method: String = "GET",
        policy: URLRequest.CachePolicy = .useProtocolCachePolicy, body: Data? = nil
    ) async throws -> Loaded {
        var request = URLRequest(url, fields, method: method, policy: policy, body: body)
        // A refresh in the background has the time of its request, not the session's.
        request.timeoutInterval = Patience.ofLoads
        return try await Self.load(request, in: session)
    }

    public static func load(_ request: URLRequest, in session: URLSession) async throws -> Loaded {
        let (data, response) = try await session.data(for: request)
        let http = try #require(response as? HTTPURLResponse)
        return Loaded(data: data, response: http)
    }

    /// False in the fallback where a task's session cannot be found out: see `LoaderFallbackTests`. False on Apple
    /// platforms, too, where `AppleTests` load through sessions.
    public static var storesForSessions: Bool {
        #if canImport(FoundationNetworking)
            TaskSession.isReadable
        #else
            false
        #endif
    }

    /// The event of the load that `body` makes.
    public func report(of body: () async throws -> Void) async throws -> DiskURLCache.Report {
        let events = cache.events()
        try await body()
        return try #require(await events.report())
    }
}

/// What a load came to.
public struct Loaded: Sendable {
    public var data: Data
    public var response: HTTPURLResponse

    public init(data: Data, response: HTTPURLResponse) {
        self.data = data
        self.response = response
    }

    public var text: String { String(decoding: data, as: UTF8.self) }
    public var status: Int { response.statusCode }
    public subscript(name: String) -> String? { response.value(forHTTPHeaderField: name) }
}

extension URLRequest {
    public init(
        _ url: URL, _ fields: [String: String] = [:], method: String = "GET",
        policy: URLRequest.CachePolicy = .useProtocolCachePolicy, body: Data? = nil
    ) {
        self.init(url: url, cachePolicy: policy)
        httpMethod = method
        httpBody = body
        for (name, value) in fields { setValue(value, forHTTPHeaderField: name) }
    }
}

extension OriginServer {
    /// Answers each request with its number, fresh for a day.
    public static func counting(_ fields: OriginFields = ["Cache-Control": "max-age=86400"]) throws -> OriginServer {
        try OriginServer { .ok("\($0.number)", fields) }
    }

    /// Answers with the text once the gate is open.
    public static func held(by gate: Gate, _ text: String, _ fields: OriginFields = [:]) throws -> OriginServer {
        try OriginServer { _ in
            var response = OriginResponse.ok(text, fields)
            response.beforeHead = { gate.wait() }
            return response
        }
    }

    /// Answers in two pieces, the second one once the gate is open.
    public static func inTwoPieces(_ gate: Gate, _ fields: OriginFields = ["Cache-Control": "max-age=60"]) throws
        -> OriginServer
    {
        try OriginServer { _ in
            OriginResponse(
                fields: fields, body: Data("onetwo".utf8), partSize: 3, beforePart: { if $0 == 1 { gate.wait() } })
        }
    }
}

/// A delegate that writes down all it hears of tasks, and can be asked to wait for their ends.
open class RecordingDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    // @unchecked: all state is behind the lock; subclasses add constants only.
    public struct Record: Sendable {
        public var responses: [URLResponse] = []
        public var chunks: [Data] = []
        public var redirects: [URLRequest] = []
        public var ends: [(any Error)?] = []
        public var data: Data { chunks.reduce(into: Data()) { $0.append($1) } }
        public var error: (any Error)? { ends.first ?? nil }
        public var http: HTTPURLResponse? { responses.first as? HTTPURLResponse }
    }

    private typealias Waiter = (
        isMet: @Sendable (Record) -> Bool, task: Int, continuation: CheckedContinuation<Record, Never>
    )

    private struct State {
        var records: [Int: Record] = [:]
        var waiters: [Waiter] = []
    }

    private let state = Guarded(State())

    public func change(_ task: URLSessionTask, _ body: (inout Record) -> Void) {
        let met = state.withLock { state in
            body(&state.records[task.taskIdentifier, default: Record()])
            let record = state.records[task.taskIdentifier] ?? Record()
            let met = state.waiters.filter { $0.task == task.taskIdentifier && $0.isMet(record) }
            state.waiters.removeAll { $0.task == task.taskIdentifier && $0.isMet(record) }
            return met.map { ($0.continuation, record) }
        }
        for (continuation, record) in met { continuation.resume(returning: record) }
    }

    public func record(of task: URLSessionTask, when isMet: @escaping @Sendable (Record) -> Bool) async -> Record {
        await withCheckedContinuation { continuation in
            let now = state.withLock { state in
                let record = state.records[task.taskIdentifier] ?? Record()
                if isMet(record) { return Optional(record) }
                state.waiters.append((isMet, task.taskIdentifier, continuation))
                return nil
            }
            if let now { continuation.resume(returning: now) }
        }
    }

    /// Resumes the task and returns what was heard until its end.
    public func run(_ task: URLSessionTask) async -> Record {
        task.resume()
        return await end(of: task)
    }

    /// What a load came to; nothing of it is kept. `session` has this delegate.
    public func data(for request: URLRequest, in session: URLSession) async throws -> (Data, URLResponse) {
        let task = session.dataTask(with: request)
        let record = await run(task)
        state.withLock { $0.records[task.taskIdentifier] = nil }
        if let error = record.error { throw error }
        guard let response = record.responses.first ?? task.response else { throw URLError(.badServerResponse) }
        return (record.data, response)
    }

    public func end(of task: URLSessionTask) async -> Record {
        await record(of: task) { !$0.ends.isEmpty }
    }

    open func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        change(dataTask) { $0.responses.append(response) }
        completionHandler(.allow)
    }

    open func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        change(dataTask) { $0.chunks.append(data) }
    }

    open func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        change(task) { $0.ends.append(error) }
    }

    open func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        change(task) { $0.redirects.append(request) }
        completionHandler(request)
    }

    // Here, since a subclass cannot replace what a protocol's default does.
    open func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        completionHandler(.cancelAuthenticationChallenge, nil)
    }

    open func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        completionHandler(proposedResponse)
    }
}
