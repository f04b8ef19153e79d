import ExampleSupport
import Foundation

extension Fleet {
    /// The same requests four times, each time with empty caches.
    func showFourWays() throws {
        let count = Self.size * Workload.requestsEach
        print("\n1. \(grouped(count)) requests for \(Workload.resources) resources, some often, most seldom (Zipf).\n")
        var table = TextTable(
            ("", .left), ("origin requests", .right), ("bytes from it", .right), ("mean", .right),
            ("median", .right), ("99 of 100", .right), ("answered without a request", .left))
        for way in Way.allCases {
            try open(way, for: "workload")
            let asked = (0..<Self.size).map { Workload.paths(process: $0, in: "\(way)") }
            let answers = try load(pause: 0.005) { asked[$0] }
            checkBodies(answers, way.rawValue)

            let tally = try tally("/catalog/")
            // All lifetimes are longer than this program, so each cache sends one request for each resource.
            let expected =
                switch way {
                case .none: asked.joined().count
                case .own: asked.reduce(0) { $0 + Set($1).count }
                case .tier, .both: Set(asked.joined()).count
                }
            check(
                tally.requests == expected, "\(way.rawValue): \(tally.requests) origin requests instead of \(expected)")

            let seconds = answers.joined().map(\.seconds).sorted()
            let own = answers.joined().filter { $0.source == .own }.map(\.seconds).sorted()
            table.add(
                way.rawValue, grouped(tally.requests), byteCount(tally.bytes),
                milliseconds(seconds.reduce(0, +) / Double(seconds.count)),
                milliseconds(seconds[seconds.count / 2]), milliseconds(seconds[seconds.count * 99 / 100]),
                own.isEmpty ? "-" : "\(own.count * 100 / seconds.count) %, median \(milliseconds(own[own.count / 2]))")
        }
        print(table.text)
    }

    /// All processes load one resource that no cache has, with four callers in each process.
    func showStampede() throws {
        let callers = 4
        print(
            "\n2. A stampede: \(callers) callers in each of \(Self.size) processes load a resource at once that no cache has.\n"
        )
        var table = TextTable(("", .left), ("origin requests", .right), ("right responses", .right))
        for way in Way.allCases {
            try open(way, for: "stampede")
            let path = "/rush/\(way)"
            for worker in workers { try worker.send(WorkerOrder.rush(path, callers: callers)) }
            let versions = try workers.flatMap { worker in
                guard case .versions(let versions) = try worker.receive(WorkerReply.self) else {
                    throw Failure("no versions")
                }
                return versions
            }
            let requests = try tally(path).requests
            let right = versions.compactMap(\.self).count
            let expected =
                switch way {
                case .none: Self.size * callers
                case .own: Self.size
                case .tier, .both: 1
                }
            check(
                requests == expected, "stampede, \(way.rawValue): \(requests) origin requests instead of \(expected)")
            check(right == Self.size * callers, "stampede, \(way.rawValue): \(right) right answers")
            table.add(way.rawValue, "\(requests)", "\(right) of \(Self.size * callers)")
        }
        print(table.text)
    }
}
