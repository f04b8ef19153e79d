import ExampleSupport
import Foundation

/// `swift run --package-path Examples Fleet [varnish | nginx]`: an origin, a shared HTTP cache in front of it (the
/// tier: a real Varnish, or nginx if there is no Varnish), and eight processes, each with a `DiskURLCache`. Shows how
/// many requests the caches save, which caches notice a change at the origin, and how the processes get through an
/// outage of the tier.
@main
enum FleetProgram {
    static func main() async throws {
        signal(SIGPIPE, SIG_IGN)
        let arguments = Array(CommandLine.arguments.dropFirst())
        switch arguments.first.flatMap(Helper.Role.init) {
        case .origin: try await OriginProcess.run()
        case .worker: try await WorkerProcess.run(Array(arguments.dropFirst()))
        case .keeper: try await KeeperProcess.run(Array(arguments.dropFirst()))
        case .garbage: try await GarbageProcess.run(Array(arguments.dropFirst()))
        case nil: try show(arguments)
        }
    }

    private static func show(_ arguments: [String]) throws {
        let wanted = arguments.isEmpty ? TierKind.allCases : arguments.compactMap(TierKind.init)
        guard wanted.count == (arguments.isEmpty ? TierKind.allCases.count : 1) else {
            complain("usage: Fleet [varnish | nginx]")
            exit(64)
        }
        guard let kind = wanted.first(where: { $0.path != nil }) else {
            let names = wanted.map(\.rawValue).joined(separator: " nor ")
            print("Skipped: neither \(names) is installed. On Debian: apt-get install varnish")
            return
        }
        let fleet = try Fleet(kind)
        print("\(Fleet.size) processes, an origin that takes \(milliseconds(Resource.delay)) for each answer, and")
        print(
            "\(kind.rawValue) as the tier, on one machine with \(ProcessInfo.processInfo.activeProcessorCount) cores.")
        do {
            for part in [fleet.showFourWays, fleet.showStampede, fleet.showChanges, fleet.showOutage] {
                try part()
                // Each part is visible before the next one begins.
                fflush(nil)
            }
        } catch {
            fleet.fail("\(error)")
        }
        fleet.end()
        for failure in fleet.failures { complain("WRONG: \(failure)") }
        if !fleet.failures.isEmpty { exit(1) }
        print("\nEvery count that does not depend on time was checked.")
    }
}

/// The processes, and the failures of the checks.
final class Fleet {
    static let size = 8

    /// The caches that the processes use.
    enum Way: String, CaseIterable {
        case none = "no cache"
        case own = "private caches only"
        case tier = "shared tier only"
        case both = "both"

        var hasOwnCache: Bool { self == .own || self == .both }
        var hasTier: Bool { self == .tier || self == .both }
    }

    let kind: TierKind
    let origin: Helper
    let keeper: Helper
    let workers: [Helper]
    let tierPort: Int
    private let originPort: Int
    private let folder: URL
    private(set) var failures: [String] = []

    init(_ kind: TierKind) throws {
        self.kind = kind
        folder = temporaryDirectory("Fleet")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        origin = try Helper(.origin)
        originPort = try origin.receive()
        tierPort = try freePort()
        keeper = try Helper(.keeper, kind.rawValue, "\(tierPort)", "\(originPort)", folder.path)
        workers = try (0..<Self.size).map { [folder] _ in try Helper(.worker, folder.path) }
        try startTier()
    }

    /// Stops the processes. The keeper removes the folder.
    func end() {
        for helper in workers + [origin, keeper] { helper.end() }
    }

    func startTier() throws {
        guard try keeper.ask(KeeperOrder.start, for: Bool.self) else { throw Failure("the tier did not start") }
    }

    func killTier() throws {
        _ = try keeper.ask(KeeperOrder.kill, for: Bool.self)
    }

    /// From now on the workers load in this way, with empty caches.
    func open(_ way: Way, for experiment: String) throws {
        for (number, worker) in workers.enumerated() {
            let directory = folder.appendingPathComponent("\(experiment)-\(way)-\(number)", isDirectory: true).path
            try worker.send(
                WorkerOrder.open(
                    directory: way.hasOwnCache ? directory : nil, tierPort: way.hasTier ? tierPort : nil,
                    originPort: originPort))
        }
        for worker in workers { _ = try worker.receive(WorkerReply.self) }
    }

    /// All workers load, each worker its paths. Returns the responses of each worker.
    func load(
        pause: TimeInterval = 0, timeout: TimeInterval = 10, whenOneHasDoneHalf: (() throws -> Void)? = nil,
        _ paths: (Int) -> [String]
    ) throws -> [[Answer]] {
        for (number, worker) in workers.enumerated() {
            let tellsHalf = number == 0 && whenOneHasDoneHalf != nil
            try worker.send(
                WorkerOrder.load(paths(number), pause: pause, timeout: timeout, tellsHalf: tellsHalf))
        }
        if let whenOneHasDoneHalf {
            guard case .half = try workers[0].receive(WorkerReply.self) else { throw Failure("not half") }
            try whenOneHasDoneHalf()
        }
        return try workers.map { worker in
            guard case .answers(let answers) = try worker.receive(WorkerReply.self) else { throw Failure("no answers") }
            return answers
        }
    }

    /// The requests for URLs below a path that have reached the origin since the last call.
    func tally(_ path: String) throws -> Tally { try origin.ask(OriginOrder.count(path)) }

    func fail(_ words: String) { failures.append(words) }

    func check(_ holds: Bool, _ words: @autoclosure () -> String) {
        if !holds { fail(words()) }
    }

    /// Each response must have arrived, with the origin's bytes.
    func checkBodies(_ answers: [[Answer]], _ place: String) {
        let wrong = answers.joined().filter { $0.source == .failed || $0.version == nil }
        check(wrong.isEmpty, "\(place): \(wrong.count) answers were missing or wrong, \(wrong.first?.path ?? "") first")
    }
}
