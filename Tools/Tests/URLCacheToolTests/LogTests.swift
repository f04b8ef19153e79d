import DiskURLCache
import Foundation
import Testing

@testable import urlcache

/// What the tool makes of a program's event log.
@Suite(.serialized) struct LogTests {
    private let scratch: Scratch

    init() throws { scratch = try Scratch() }

    private struct Simulation: Decodable {
        struct Row: Decodable, Equatable {
            let capacity: Int
            let evictionWeighsSize: Bool
            let hits: Int
            let hitRatio: Double
            let bytesFromCache: Int
        }

        let requests: Int
        let responses: Int
        let bytesOnDisk: Int
        let rows: [Row]
    }

    private func simulation(_ arguments: String...) throws -> Simulation {
        let run = try Tool.run(["simulate"] + arguments + ["--json"])
        #expect(run.status == 0, "\(run.output)")
        return try JSONDecoder().decode(Simulation.self, from: Data(run.output.utf8))
    }

    /// A log with loads of some URLs, each of 1,000 bytes, in the form of the library's event log.
    private func log(
        _ names: [String], at time: TimeInterval = 1_790_000_000, to path: String? = nil
    ) throws -> String {
        let lines = names.enumerated().map { number, name in
            """
            {"at":\(time + Double(number)),"event":{"load":{"_0":{"url":"https://example.com/\(name)","method":"GET",\
            "outcome":{"miss":{"_0":{"code":"not-in-cache","words":"not in the cache"}}},"status":200,"bytes":1000,\
            "duration":0.1,"startedAt":\(time + Double(number)),"isStored":true,"isCollapsed":false,"cacheStatus":""}}}}
            """
        }
        let file = path ?? scratch.path("log.jsonl")
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: file))
        return file
    }

    /// A program begins a new file when its log is long, between two looks of `watch`.
    @Test func whatWasWrittenBeforeTheLogWasReplacedIsShown() throws {
        let file = URL(fileURLWithPath: try log(["before"]))
        func paths(_ entries: [LogEntry]) -> [String] {
            entries.compactMap { if case .load(let report) = $0.event { report.url?.lastPathComponent } else { nil } }
        }
        func append(_ name: String) throws {
            let line = try Data(contentsOf: URL(fileURLWithPath: try log([name], to: scratch.path("line"))))
            let handle = try FileHandle(forWritingTo: file)
            try handle.seekToEnd()
            try handle.write(contentsOf: line)
            try handle.close()
        }
        var tail = Tail(file)
        #expect(paths(tail.newEntries()).isEmpty)
        try append("old")
        try FileManager.default.moveItem(at: file, to: file.appendingPathExtension("1"))
        #expect(try log(["new"]) == file.path)
        #expect(paths(tail.newEntries()) == ["old", "new"])
        try append("newer")
        #expect(paths(tail.newEntries()) == ["newer"])
        // It is cut, and begins again.
        #expect(try log(["x"]) == file.path)
        #expect(paths(tail.newEntries()) == ["x"])
    }

    @Test func aSimulationCountsWhatEachCapacityAnswers() throws {
        let file = try log(["a", "b", "c", "a", "b", "c", "c", "c"])
        let found = try simulation(file, "--capacity", "0", "10KB", "1MB")
        #expect(found.requests == 8 && found.responses == 3)
        #expect(found.rows.map(\.capacity) == [0, 0, 10_240, 10_240, 1 << 20, 1 << 20])
        #expect(found.rows.map(\.evictionWeighsSize) == [false, true, false, true, false, true])
        // With room for two responses a loop of three finds none, apart from the last ones.
        #expect(found.rows.map(\.hits) == [0, 0, 2, 2, 5, 5])
        #expect(found.rows[4].hitRatio == 0.625 && found.rows[4].bytesFromCache == 5_000)
        #expect(try simulation(file, "--capacity", "\(found.bytesOnDisk)").rows[0].hits == 5)
        let text = try Tool.run("simulate", file, "--capacity", "1MB")
        expect(0, "^8 requests for 7.8 KB; the 3 responses", text)
        expect(0, "^ +1.0 MB  by use +62.5 % +62.5 %  █{25}·{15}$", text)
        expect(0, "^Without eviction: 62.5 % of the requests", text)
        let small = try Tool.run("simulate", file, "--capacity", "6KB", "1MB")
        expect(0, "^6.0 KB: 3 responses are larger than half of this capacity, and so not stored\\.$", small)
        #expect(!small.output.contains("1.0 MB: "))
    }

    @Test func theCapacitiesAreChosenIfNoneIsGiven() throws {
        let cache = try scratch.demo(entries: 300)
        let found = try simulation(cache)
        #expect(found.rows.count == 16 && found.rows.last?.capacity == found.bytesOnDisk)
        for weighs in [false, true] {
            let hits = found.rows.filter { $0.evictionWeighsSize == weighs }.map(\.hits)
            #expect(zip(hits, hits.dropFirst()).allSatisfy { $0 <= $1 }, "\(hits)")
        }
        #expect(found.rows[14].hits == found.rows[15].hits, "nothing is evicted at the last capacity")
    }

    @Test func aLogWithoutLoadsIsTold() throws {
        expect(1, "There is no event log at", try Tool.run("simulate", scratch.path("missing")))
        let empty = try scratch.demo(entries: 30, withLoads: false)
        expect(1, "no loads with a URL", try Tool.run("simulate", empty))
        expect(64, "capacity", try Tool.run("simulate", empty, "--capacity", "large"))
    }

    private struct Top: Decodable {
        struct Row: Decodable {
            let name: String
            let loads: Int
        }

        let loads: Int
        let hits: Int
        let bytesFromNetwork: Int
        let ratios: [Double?]
        let rows: [Row]
    }

    @Test func topShowsTheEndOfTheLog() throws {
        let file = try log((0..<60).map { "\($0 % 2)" })
        func top(_ arguments: String...) throws -> Top {
            let run = try Tool.run(["top", "--log", file, "--once", "--json"] + arguments)
            #expect(run.status == 0, "\(run.output)")
            return try JSONDecoder().decode(Top.self, from: Data(run.output.utf8))
        }
        let all = try top()
        #expect(all.loads == 60 && all.hits == 0 && all.bytesFromNetwork == 60_000 && all.ratios.count == 30)
        #expect(all.rows.map(\.name) == ["example.com"])
        let few = try top("--last", "9s", "--by", "url")
        #expect(few.loads == 10 && few.rows.map(\.loads) == [5, 5])
        #expect(few.rows.first?.name == "https://example.com/0")
        let text = try Tool.run("top", "--log", file, "--once")
        expect(0, "^loads 60 \\(0.2 a second\\)   hits 0.0 %", text)
        expect(0, "^ +60 +0.0 % +0 B +59 KB  example.com$", text)
        expect(1, "There is no event log", try Tool.run("top", "--log", scratch.path("none"), "--once"))
    }

    #if os(Linux)
        static let hasTerminal = FileManager.default.isExecutableFile(atPath: "/usr/bin/script")

        /// A pipe gets no colours, a terminal does, and none if its user says so.
        @Test(.enabled(if: hasTerminal, "needs script")) func coloursAreForATerminalThatWantsThem() throws {
            let cache = try scratch.demo(entries: 30)
            func list(_ setting: String) throws -> Bool {
                let command = "\(setting) '\(Tool.program.path)' list '\(cache)'"
                let run = try Tool.run("-qec", command, "/dev/null", program: URL(fileURLWithPath: "/usr/bin/script"))
                expect(0, "https?://", run)
                return run.output.contains("\u{1B}[")
            }
            #expect(try list("NO_COLOR= TERM=xterm"))
            #expect(try !list("NO_COLOR=1 TERM=xterm"))
            #expect(try !list("NO_COLOR= TERM=dumb"))
            #expect(try !Tool.run("list", cache).output.contains("\u{1B}"))
        }
    #endif
}
