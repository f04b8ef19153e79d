import Foundation

@testable import DiskURLCache

/// One thing that a script does. Loads run beside what comes next, unless they are waited for.
enum ModelStep: Sendable {
    enum Way: Sendable, CaseIterable {
        /// A completion handler, a delegate that takes pieces, `data(for:)`.
        case session, delegate, direct
    }

    case load(ModelLoad, Way, waits: Bool)
    /// PUT or DELETE through the session.
    case unsafe(method: String, ModelRequest, waits: Bool)
    case cancelNewest
    case lookup(ModelRequest, method: String)
    case store(ModelRequest, inMemoryOnly: Bool)
    /// A response with `no-store`: it is not stored, and the stored response is removed.
    case storeForbidden(ModelRequest)
    case pin(ModelRequest, Bool)
    case markStale(ModelRequest)
    case remove(ModelRequest)
    case removeAll
    case removeSince(secondsAgo: Int)
    case removeMemory
    case relieveMemory
    case flush
    case capacity(memory: Int, disk: Int)

    // At the origin.
    case edit(path: String, ModelControl, isNewVersion: Bool)
    case hold(path: String)
    case release(path: String)
    case failNext(path: String, ModelOrigin.Failure)
    case advance(seconds: Int)

    // Processes. A relaunch opens what the old process closed; a killed one could not close.
    case relaunch(isKilled: Bool)
    // Other processes are numbered from 1 on.
    case peerStore(ModelRequest, by: Int)
    case peerRemove(ModelRequest, by: Int)
    case peerRemoveAll(by: Int)
    case peerLookup(ModelRequest, by: Int)

    /// At the same time.
    case together([ModelStep])
}

/// A random script: all of it follows from the seed.
struct ModelScript: Sendable {
    let seed: Int
    var memory: Int
    var disk: Int
    /// How many other processes share the directory: none, one or three.
    let peers: Int
    /// Whether one file operation in four takes up to 1.5 ms longer, in all processes: then threads and processes get
    /// in each other's way.
    let hasSlowFiles: Bool
    var steps: [ModelStep]

    /// - Parameter peerLimit: how many other processes are at hand.
    init(seed: Int, peerLimit: Int) {
        var random = TestRandom(seed)
        for _ in 0..<8 { _ = random.next() }
        self.seed = seed
        memory = [0, 60_000, 8 << 20, 8 << 20].randomElement(using: &random) ?? 0
        disk = [0, 250_000, 50 << 20, 50 << 20].randomElement(using: &random) ?? 0
        let isShared = Int.random(in: 0..<3, using: &random) == 0
        // A cache in memory shares nothing.
        let usesPeer = isShared && peerLimit > 0 && disk > 0
        let count = Int.random(in: 8..<60, using: &random)
        // Most of a script is about one path.
        let favourite = ModelOrigin.paths.randomElement(using: &random) ?? "/a"
        steps = []
        for _ in 0..<count { steps.append(Self.step(&random, favourite, isShared: isShared, isNested: false)) }
        if !usesPeer { steps.removeAll { $0.isPeers } }
        hasSlowFiles = Int.random(in: 0..<4, using: &random) == 0
        let hasMany = usesPeer && peerLimit >= 3 && Bool.random(using: &random)
        guard hasMany else {
            peers = usesPeer ? 1 : 0
            return
        }
        peers = 3
        steps = steps.map { $0.done(by: .random(in: 1...3, using: &random)) }
    }

    private static func step(
        _ random: inout TestRandom, _ favourite: String, isShared: Bool, isNested: Bool
    ) -> ModelStep {
        func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }
        let request = ModelRequest(
            path: chance(70) ? favourite : ModelOrigin.paths.randomElement(using: &random) ?? favourite,
            user: chance(25) ? "u" : nil, language: chance(30) ? "fr" : "en", isSpelledOtherwise: chance(20))
        let path = request.path
        func load() -> ModelStep {
            var load = ModelLoad(request: request)
            if chance(10) { load.method = "HEAD" }
            if chance(40) { load.policy = ModelLoad.Policy.allCases.randomElement(using: &random) ?? .useProtocol }
            return .load(load, ModelStep.Way.allCases.randomElement(using: &random) ?? .session, waits: chance(60))
        }
        let kind = Int.random(in: 0..<(isNested ? 72 : 100), using: &random)
        switch kind {
        case 0..<26: return load()
        case 26..<28: return .pin(request, chance(70))
        case 28..<30: return .markStale(request)
        case 30..<36: return .unsafe(method: chance(50) ? "PUT" : "DELETE", request, waits: chance(70))
        case 36..<42: return .lookup(request, method: chance(15) ? "HEAD" : "GET")
        case 42..<48: return .store(request, inMemoryOnly: chance(15))
        case 48: return .storeForbidden(request)
        case 49..<54: return .remove(request)
        case 54..<57: return .removeAll
        case 57: return .removeSince(secondsAgo: chance(50) ? 1 : 100)
        case 58..<60: return .removeMemory
        case 60: return .relieveMemory
        case 61..<64: return .flush
        case 64..<67: return .edit(path: path, control(&random), isNewVersion: chance(80))
        case 67..<70:
            guard isShared else { return load() }
            switch Int.random(in: 0..<5, using: &random) {
            case 0: return .peerStore(request, by: 1)
            case 1, 2: return .peerRemove(request, by: 1)
            case 3: return .peerRemoveAll(by: 1)
            default: return .peerLookup(request, by: 1)
            }
        case 70: return .cancelNewest
        case 71:
            return .failNext(path: path, ModelOrigin.Failure.allCases.randomElement(using: &random) ?? .status)
        case 72..<78: return .hold(path: path)
        case 78..<84: return .release(path: path)
        case 84..<87: return .advance(seconds: [1, 5, 61, 1_000].randomElement(using: &random) ?? 5)
        case 87..<90: return .relaunch(isKilled: chance(50))
        case 90:
            return .capacity(
                memory: [0, 60_000, 8 << 20].randomElement(using: &random) ?? 0,
                disk: [100_000, 250_000, 50 << 20].randomElement(using: &random) ?? 0)
        default:
            let count = Int.random(in: 2..<6, using: &random)
            return .together(
                (0..<count).map { _ in step(&random, favourite, isShared: false, isNested: true) })
        }
    }

    private static func control(_ random: inout TestRandom) -> ModelControl {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: ModelControl(maxAge: 0)
        case 1: ModelControl(maxAge: 0, noCache: true)
        case 2: ModelControl(maxAge: 0, noStore: true)
        case 3: ModelControl(maxAge: 4, staleWhileRevalidate: 100)
        case 4: ModelControl(maxAge: 2_000)
        default: ModelControl()
        }
    }
}

extension ModelStep {
    var isPeers: Bool {
        switch self {
        case .peerStore, .peerRemove, .peerRemoveAll, .peerLookup: true
        default: false
        }
    }

    /// The same step by another peer; a step of the test's own process stays as it is.
    func done(by peer: Int) -> ModelStep {
        switch self {
        case .peerStore(let request, _): .peerStore(request, by: peer)
        case .peerRemove(let request, _): .peerRemove(request, by: peer)
        case .peerRemoveAll: .peerRemoveAll(by: peer)
        case .peerLookup(let request, _): .peerLookup(request, by: peer)
        default: self
        }
    }
}
