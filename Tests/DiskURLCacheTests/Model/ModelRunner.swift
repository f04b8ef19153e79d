import Foundation

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Runs one script against a cache in a scratch directory, and asks the reference model about each answer.
///
/// `@unchecked Sendable`: the variables are changed by steps that run alone (`relaunch`); steps that run together only
/// read them.
final class ModelRunner: @unchecked Sendable {
    private let script: ModelScript
    let model = ReferenceModel()
    private let origin: ModelOrigin
    private let server: OriginServer
    private let scratch: ScratchDirectory
    private let peers: [ModelPeer]
    private let outstanding = Outstanding()
    private let delegate = RecordingDelegate()

    private var directory: URL
    private var launches = 0
    /// Whether a store may still be removed at once: the first one of each later launch beside another process. A cache
    /// that becomes the owner after an earlier owner, and finds a guest already there, cannot know what that owner
    /// removed, and removes everything once.
    private var mayForgetAStore = false
    private var cache: DiskURLCache
    private var session: URLSession
    private var delegateSession: URLSession
    private var capacities: (memory: Int, disk: Int)
    /// Whether steps run at the same time now.
    private var isTogether = false

    init(_ script: ModelScript, peers: [ModelPeer]) throws {
        self.script = script
        self.peers = Array(peers.prefix(script.peers))
        let outstanding = outstanding
        let origin = ModelOrigin(model) { load in outstanding.settle(load) }
        self.origin = origin
        server = try OriginServer { origin.answer($0) }
        scratch = try ScratchDirectory("model")
        directory = scratch.appending("cache0")
        capacities = (script.memory, script.disk)
        cache = Self.open(directory, capacities, model.clock, hasSlowFiles: script.hasSlowFiles)
        session = LoadingHarness.session(of: cache)
        delegateSession = LoadingHarness.session(of: cache, delegate: delegate)
        openPeers()
        if script.memory < 8 << 20 { model.change { $0.forgets = true } }
    }

    private static func open(
        _ directory: URL, _ capacities: (memory: Int, disk: Int), _ clock: ModelClock, hasSlowFiles: Bool
    ) -> DiskURLCache {
        var settings = DiskURLCache.Configuration(
            memoryCapacity: capacities.memory, diskCapacity: capacities.disk, directory: directory)
        settings.clock = clock.wallClock
        settings.cacheStatusName = "model"
        if hasSlowFiles { settings.fileSystem = Self.slowFiles() }
        return DiskURLCache(configuration: settings)
    }

    static func slowFiles() -> FaultyFileSystem {
        FaultyFileSystem { _ in
            if Int.random(in: 0..<4) == 0 { usleep(.random(in: 0..<1_500)) }
            return nil
        }
    }

    // MARK: The script

    /// What was not allowed; nil where all was.
    func run() async -> String? {
        for step in script.steps {
            if model.violation != nil { break }
            model.change { $0.note("* step: \(step)") }
            await run(step)
        }
        await endLoads()
        // What is stored in the end, and what the next process finds.
        for isRelaunched in [false, true] where model.violation == nil {
            if isRelaunched { await relaunch(isKilled: script.seed % 2 == 0) }
            for path in ModelOrigin.paths {
                for language in ["en", "fr"] {
                    for user in [nil, "u"] {
                        look(ModelRequest(path: path, user: user, language: language), "GET")
                    }
                }
            }
        }
        close()
        for peer in peers { _ = peer.ask("close") }
        return model.violation
    }

    private func run(_ step: ModelStep) async {
        switch step {
        case .load(let load, let way, let waits): await start(load, way, waits: waits)
        case .unsafe(let method, let request, let waits):
            var load = ModelLoad(request: request)
            load.method = method
            await start(load, .session, waits: waits)
        case .cancelNewest: outstanding.cancelNewest()
        case .lookup(let request, let method): look(request, method)
        case .store(let request, let inMemoryOnly): store(request, inMemoryOnly: inMemoryOnly)
        case .storeForbidden(let request):
            model.remove(.key(path: request.path, user: request.user)) {
                let url = server.url(request.path)
                cache.storeCachedResponse(
                    Responses.cached(url, fields: ["Cache-Control": "no-store"]), for: urlRequest(request))
            }
        case .pin(let request, let isPinned): cache.setPinned(isPinned, for: urlRequest(request))
        case .markStale(let request):
            // Whatever else is in the keys of the URL.
            model.markStale(.url(request.path)) {
                cache.markStale(for: urlRequest(request))
            }
        case .remove(let request):
            model.remove(.key(path: request.path, user: request.user)) {
                cache.removeCachedResponse(for: urlRequest(request))
            }
        case .removeAll: model.remove(.everything) { cache.removeAllCachedResponses() }
        case .removeSince(let secondsAgo):
            let date = model.clock.now.addingTimeInterval(-Double(secondsAgo))
            model.remove(.since(date.timeIntervalSince1970)) { cache.removeCachedResponses(since: date) }
        case .removeMemory:
            model.change { $0.forgets = true }
            cache.removeAllCachedResponses(from: .memory)
        case .relieveMemory:
            model.change { $0.forgets = true }
            cache.store.relieveMemory()
        case .flush: model.flush { cache.flush() }
        case .capacity(let memory, let disk):
            capacities = (memory, disk)
            model.change { $0.forgets = true }
            cache.memoryCapacity = memory
            cache.diskCapacity = disk
        case .edit(let path, let control, let isNewVersion):
            origin.edit(path, control, isNewVersion: isNewVersion)
        case .hold(let path): origin.hold(path)
        case .release(let path): origin.release(path)
        case .failNext(let path, let failure): origin.failNext(path, failure)
        case .advance(let seconds):
            // The processes of a machine have one clock. A cache whose clock is behind takes a response of
            // the other processes for one from the future, and prefers an older response.
            for peer in peers { _ = peer.ask("clock", "\(model.clock.seconds + Double(seconds))") }
            model.clock.advance(by: seconds)
        case .relaunch(let isKilled): await relaunch(isKilled: isKilled)
        case .peerStore, .peerRemove, .peerRemoveAll, .peerLookup: askPeer(step)
        case .together(let steps):
            isTogether = true
            await withTaskGroup(of: Void.self) { group in
                for step in steps { group.addTask { await self.run(step) } }
            }
            isTogether = false
        }
    }

    // MARK: Loads

    private func url(_ request: ModelRequest) -> URL {
        server.url(request.path + (request.isSpelledOtherwise ? "#part" : ""))
    }

    private func urlRequest(_ request: ModelRequest, method: String = "GET") -> URLRequest {
        var result = URLRequest(url(request), ["Accept-Language": request.language], method: method)
        if let user = request.user { result.setValue(user, forHTTPHeaderField: "Authorization") }
        return result
    }

    private func start(_ load: ModelLoad, _ way: ModelStep.Way, waits: Bool) async {
        // A session has six connections to a host: what is held must not keep the rest waiting.
        guard outstanding.count < 4 else { return }
        let load = model.beginLoad(load)
        var request = urlRequest(load.request, method: load.method)
        request.setValue("\(load.number)", forHTTPHeaderField: "X-Load")
        request.cachePolicy =
            switch load.policy {
            case .useProtocol: .useProtocolCachePolicy
            case .reload: .reloadIgnoringLocalCacheData
            case .revalidate: .reloadRevalidatingCacheData
            case .elseLoad: .returnCacheDataElseLoad
            case .dontLoad: .returnCacheDataDontLoad
            }
        // Stuck is an error of the load.
        request.timeoutInterval = 60
        let (cache, session, delegateSession, delegate) = (cache, session, delegateSession, delegate)
        let (started, cancellation) = (request, ModelCancellation())
        let task = Task { [model, outstanding] in
            do {
                let (data, response): (Data, URLResponse)
                switch way {
                case .session: (data, response) = try await cancellation.data(for: started, in: session)
                case .delegate where load.method != "PUT" && load.method != "DELETE":
                    (data, response) = try await delegate.data(for: started, in: delegateSession)
                case .delegate: (data, response) = try await cancellation.data(for: started, in: session)
                case .direct:
                    let answer = try await cache.data(for: started)
                    data = answer.data
                    response = answer.response
                }
                model.end(load, ModelAnswer(response, data))
            } catch {
                model.fail(load, "\(error)", isExpected: Task.isCancelled || cancellation.isCancelled)
            }
            outstanding.end(load.number)
        }
        let settled = outstanding.begin(load, task) {
            if way == .direct { task.cancel() } else { cancellation.cancel() }
        }
        if waits, !origin.isHeld(load.path) {
            await task.value
        } else if waits {
            // Until the answer is held, or the load needed none.
            await settled.wait()
        }
    }

    private func endLoads() async {
        for path in ModelOrigin.paths { origin.release(path) }
        await outstanding.endAll()
    }

    // MARK: Calls

    private func look(_ request: ModelRequest, _ method: String) {
        var load = ModelLoad(request: request)
        load.method = method
        load.isLookup = true
        load = model.beginLoad(load)
        if let found = cache.cachedResponse(for: urlRequest(request, method: method)) {
            model.end(load, ModelAnswer(found.response, found.data))
        } else {
            model.fail(load, "nothing", isExpected: true)
        }
    }

    private func store(_ request: ModelRequest, inMemoryOnly: Bool) {
        let isAlone = outstanding.count == 0
        let item = origin.item(byHand: request, process: 0)
        let response = Responses.cached(
            server.url(request.path), String(decoding: item.body, as: UTF8.self), fields: item.fields,
            policy: inMemoryOnly ? .allowedInMemoryOnly : .allowed)
        cache.storeCachedResponse(response, for: urlRequest(request))
        model.setVisible(item.number)
        // Room enough, and nobody who would remove it.
        guard isAlone, cache.memoryCapacity >= 8 << 20, !isTogether else { return }
        let found = cache.cachedResponse(for: urlRequest(request))
        if found?.data != item.body {
            if mayForgetAStore {
                mayForgetAStore = false
                return
            }
            model.fail("item \(item.number) of \(request.path) is not found after its store")
        }
    }

    // MARK: Processes

    private func relaunch(isKilled: Bool) async {
        await endLoads()
        launches += 1
        mayForgetAStore = !peers.isEmpty
        let next = scratch.appending("cache\(launches)")
        let maintenance = (cache.store.disk as? DiskStore)?.maintenance
        let files = FileManager.default
        if isKilled {
            maintenance?.pause()
            Self.copy(directory.path, to: next.path)
            model.kill()
            maintenance?.resume()
            close()
        } else {
            model.flush { cache.store.close() }
            try? files.moveItem(at: directory, to: next)
            model.kill()
            close()
        }
        directory = next
        cache = Self.open(directory, capacities, model.clock, hasSlowFiles: script.hasSlowFiles)
        session = LoadingHarness.session(of: cache)
        delegateSession = LoadingHarness.session(of: cache, delegate: delegate)
        openPeers()
    }

    /// Copies the files as they are at this moment, one by one. Foundation's own copy never ends if a second process
    /// shortens a file meanwhile.
    private static func copy(_ path: String, to other: String) {
        let files = FileManager.default
        try? files.createDirectory(
            atPath: other, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        for name in (try? files.contentsOfDirectory(atPath: path)) ?? [] {
            let (from, to) = (path + "/" + name, other + "/" + name)
            var isDirectory: ObjCBool = false
            guard files.fileExists(atPath: from, isDirectory: &isDirectory) else { continue }
            if isDirectory.boolValue {
                copy(from, to: to)
            } else if let data = files.contents(atPath: from) {
                _ = files.createFile(atPath: to, contents: data, attributes: [.posixPermissions: 0o600])
            }
        }
    }

    private func close() {
        session.finishTasksAndInvalidate()
        delegateSession.finishTasksAndInvalidate()
        cache.directLink.session.finishTasksAndInvalidate()
    }

    private func openPeers() {
        for peer in peers {
            _ = peer.ask(
                "open", directory.path, "\(capacities.memory)", "\(max(capacities.disk, 250_000))",
                script.hasSlowFiles ? "slow" : "fast", "\(model.clock.seconds)")
        }
    }

    /// What another process changed is seen within a second: the model does not wait for it.
    private func lookAtOnce() { (cache.store.disk as? DiskStore)?.checkNow() }

    private func askPeer(_ step: ModelStep) {
        let now = "\(model.clock.seconds)"
        func ask(_ number: Int, _ words: [String]) -> String? {
            peers[number - 1].ask(words.joined(separator: " "))
        }
        func facts(_ request: ModelRequest) -> [String] {
            [url(request).absoluteString, request.user ?? "-", request.language]
        }
        switch step {
        case .peerStore(let request, let peer):
            let item = origin.item(byHand: request, process: peer)
            let fields = item.fields.map { "\($0)=\($1)" }.joined(separator: "|")
            _ = ask(peer, ["store", now] + facts(request) + [fields, item.body.base64EncodedString()])
            lookAtOnce()
            model.setVisible(item.number)
        case .peerRemove(let request, let peer):
            model.remove(.key(path: request.path, user: request.user), by: peer) {
                _ = ask(peer, ["remove", now] + facts(request))
                lookAtOnce()
            }
        case .peerRemoveAll(let peer):
            model.remove(.everything, by: peer) {
                _ = ask(peer, ["clear", now])
                lookAtOnce()
            }
        case .peerLookup(let request, let peer):
            var load = ModelLoad(request: request)
            load.isLookup = true
            load.process = peer
            load = model.beginLoad(load)
            let words = ask(peer, ["lookup", now] + facts(request))?.split(separator: " ") ?? []
            if words.first == "found", words.count == 4 {
                model.end(
                    load,
                    ModelAnswer(
                        status: 200, path: request.path, token: Int(words[1]), check: Int(words[2]),
                        body: Data(base64Encoded: String(words[3])) ?? Data()))
            } else {
                model.fail(load, words.joined(separator: " "), isExpected: words.first == "nothing")
            }
        default: break
        }
    }
}

extension ModelAnswer {
    init(_ response: URLResponse, _ data: Data) {
        let http = response as? HTTPURLResponse
        self.init(
            status: http?.statusCode ?? 0, path: http?.url?.path ?? "",
            token: http?.value(forHTTPHeaderField: "X-Token").flatMap { Int($0) },
            check: http?.value(forHTTPHeaderField: "X-Check").flatMap { Int($0) }, body: data)
    }
}

/// The loads of a script that have not ended.
private final class Outstanding: Sendable {
    private struct Load {
        let load: ModelLoad
        let task: Task<Void, Never>
        let cancel: @Sendable () -> Void
        let settled: ModelSignal
    }

    private struct State {
        var loads: [Int: Load] = [:]
        /// Ended, or their answers held; either may come before the load is entered.
        var settled: Set<Int> = []
        var ended: Set<Int> = []
    }

    private let state = Mutex(State())

    var count: Int { state.withLock { $0.loads.count } }

    func begin(
        _ load: ModelLoad, _ task: Task<Void, Never>, _ cancel: @escaping @Sendable () -> Void
    ) -> ModelSignal {
        let signal = ModelSignal()
        let isSettled = state.withLock { state in
            // The load may wait for an equal load, or be redirected to the URL of one: then it sends no request of its
            // own.
            let mayFollow = state.loads.values.contains {
                $0.load.path == load.path || [$0.load.path, load.path].contains(ModelOrigin.redirecting)
            }
            if !state.ended.contains(load.number) {
                state.loads[load.number] = Load(load: load, task: task, cancel: cancel, settled: signal)
            }
            return mayFollow || state.settled.contains(load.number)
        }
        if isSettled { signal.fire() }
        return signal
    }

    func end(_ number: Int) {
        let signal = state.withLock { state in
            state.ended.insert(number)
            state.settled.insert(number)
            return state.loads.removeValue(forKey: number)?.settled
        }
        signal?.fire()
    }

    /// The answer to a load is held.
    func settle(_ number: Int) {
        let signal = state.withLock { state in
            state.settled.insert(number)
            return state.loads[number]?.settled
        }
        signal?.fire()
    }

    func cancelNewest() {
        let cancel = state.withLock { state in state.loads.max { $0.key < $1.key }?.value.cancel }
        cancel?()
    }

    func endAll() async {
        let tasks = state.withLock { $0.loads.values.map(\.task) }
        for task in tasks { await task.value }
    }
}

/// Something that happens once, and that a task can wait for.
private final class ModelSignal: Sendable {
    private let state = Mutex((hasFired: false, waiter: CheckedContinuation<Void, Never>?.none))

    func fire() {
        let waiter = state.withLock { state in
            state.hasFired = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    func wait() async {
        await withCheckedContinuation { continuation in
            let hasFired = state.withLock { state in
                if !state.hasFired { state.waiter = continuation }
                return state.hasFired
            }
            if hasFired { continuation.resume() }
        }
    }
}

/// Cancels a load of a session by its task. Foundation's own `data(for:)` on Linux can wait for ever where the Swift
/// task is cancelled while the answer comes: each of the two holds a lock that the other needs.
private final class ModelCancellation: Sendable {
    private let state = Mutex((isCancelled: false, task: URLSessionTask?.none))

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func data(for request: URLRequest, in session: URLSession) async throws -> (Data, URLResponse) {
        try await withCheckedThrowingContinuation { continuation in
            let task = session.dataTask(with: request) { data, response, error in
                if let data, let response, error == nil {
                    continuation.resume(returning: (data, response))
                } else {
                    continuation.resume(throwing: error ?? URLError(.badServerResponse))
                }
            }
            state.withLock { $0.task = task }
            task.resume()
        }
    }

    func cancel() {
        let task = state.withLock { state in
            state.isCancelled = state.task != nil
            return state.task
        }
        task?.cancel()
    }
}
