import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

struct Top: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Shows, each second, what a running program's cache answers: hit ratio, bytes, and the busiest hosts.",
        discussion: """
            The program must hold an EventLog of its cache. The picture covers the time of --last. With --once it is printed once, \
            for the end of the log; so it is if standard output is no terminal. Stop it with Control-C.
            """)

    /// What a line of the table is about.
    enum Key: String, ExpressibleByArgument, CaseIterable {
        case host, url, outcome
    }

    @OptionGroup var program: ProgramLog

    @Option(help: "The time that is shown: 30s, 5m, 12h.")
    var last = Span(seconds: 300)

    @Option(help: "A line for each host, url or outcome.")
    var by = Key.host

    @Option(help: "The largest number of lines.")
    var limit = 15

    @Flag(help: "Print the picture once and exit.")
    var once = false

    @Flag(help: "Print JSON; without --once, an object each second.")
    var json = false

    func run() async throws {
        let file = try program.file()
        var entries = DiskURLCache.EventLog.entries(in: file)
        if once || (!json && isatty(STDOUT_FILENO) != 1) {
            guard let end = entries.last?.date else { throw Problem(ProgramLog.missing(file)) }
            let picture = picture(entries, until: end)
            return try json ? printJSON(picture) : show(text(picture))
        }
        var tail = Tail(file)
        while true {
            let now = Date()
            entries = (entries + tail.newEntries()).filter { now.timeIntervalSince($0.date) <= last.seconds }
            let picture = picture(entries, until: now)
            if json {
                try printJSON(picture, isLine: true)
            } else {
                // From the top left corner; what was below is cleared.
                show("\u{1B}[H\u{1B}[2J" + text(picture))
            }
            try flushOutput()
            try await Task.sleep(for: .seconds(1))
        }
    }

    // MARK: The picture

    struct Picture: Encodable {
        struct Row: Encodable {
            let name: String
            var loads = 0
            var hits = 0
            var bytesFromCache = 0
            var bytesFromNetwork = 0
        }

        let until: Date
        let seconds: Double
        var loads = 0
        /// Answered from the cache, also after a 304.
        var hits = 0
        var failed = 0
        var bytesFromCache = 0
        var bytesFromNetwork = 0
        var stored = 0
        var evicted = 0
        /// The hit ratio in each thirtieth of the time, nil where there was no load.
        var ratios: [Double?] = []
        var rows: [Row] = []
        /// The newest events, the last one first.
        var events: [Line] = []
    }

    private func picture(_ entries: [LogEntry], until end: Date) -> Picture {
        var picture = Picture(until: end, seconds: last.seconds)
        var rows: [String: Picture.Row] = [:]
        var parts = [(hits: Int, loads: Int)](repeating: (0, 0), count: Self.parts)
        let start = end.addingTimeInterval(-last.seconds)
        for entry in entries where entry.date >= start && entry.date <= end {
            switch entry.event {
            case .stored: picture.stored += 1
            case .evicted(let count, _): picture.evicted += count
            case .load(let load):
                let name = name(of: load)
                var row = rows[name] ?? Picture.Row(name: name)
                let share = entry.date.timeIntervalSince(start) / max(last.seconds, 0.001)
                let part = min(Self.parts - 1, Int(share * Double(Self.parts)))
                picture.loads += 1
                row.loads += 1
                parts[part].loads += 1
                switch load.outcome {
                case .hit, .staleHit, .revalidated:
                    picture.hits += 1
                    row.hits += 1
                    parts[part].hits += 1
                    picture.bytesFromCache += load.bytes
                    row.bytesFromCache += load.bytes
                case .expired, .miss, .bypass:
                    picture.bytesFromNetwork += load.bytes
                    row.bytesFromNetwork += load.bytes
                case .failed, .notAllowed: picture.failed += 1
                @unknown default: break
                }
                rows[name] = row
            case .notStored, .invalidated, .problem: break
            @unknown default: break
            }
        }
        picture.ratios = parts.map { $0.loads == 0 ? nil : Double($0.hits) / Double($0.loads) }
        let sorted = rows.values.sorted { ($0.loads, $1.name) > ($1.loads, $0.name) }
        picture.rows = Array(sorted.prefix(max(0, limit)))
        picture.events = entries.suffix(5).reversed().map { Line($0) }
        return picture
    }

    private static let parts = 30

    private func name(of load: DiskURLCache.Report) -> String {
        switch by {
        case .host: load.url?.host ?? "unknown"
        case .url: load.url?.absoluteString ?? "unknown"
        case .outcome: load.inWords.what
        }
    }

    // MARK: As text

    private func text(_ picture: Picture) -> Shown {
        let perSecond = String(format: "%.1f", Double(picture.loads) / max(picture.seconds, 1))
        let ratio = picture.loads == 0 ? "–" : percent(Double(picture.hits) / Double(picture.loads))
        let bars = picture.ratios.map { ratio in
            ratio.map { String(Self.bars[min(7, Int($0 * 8))]) } ?? " "
        }.joined()
        let head: [Shown] = [
            "\(picture.until), the last \(span(picture.seconds))",
            "loads \(picture.loads) (\(perSecond) a second)   hits \(colour("\(ratio)", .good))   failed \(picture.failed)",
            "from the cache \(byteCount(picture.bytesFromCache))   from the network \(byteCount(picture.bytesFromNetwork))"
                + "   stored \(picture.stored)   evicted \(picture.evicted)",
            "hit ratio over the time  |\(colour("\(bars)", .good))|",
        ]
        let table = columns(
            ["loads", "hits", "from cache", "from network", by.rawValue], rightAligned: [0, 1, 2, 3],
            picture.rows.map { row -> [Shown] in
                [
                    "\(row.loads)", "\(percent(Double(row.hits) / Double(max(1, row.loads))))",
                    "\(byteCount(row.bytesFromCache))", "\(byteCount(row.bytesFromNetwork))",
                    "\(row.name.prefix(100))",
                ]
            })
        let events = picture.events.map(\.text).joined("\n")
        return head.joined("\n") + "\n\n" + table + "\n\n" + events
    }

    private static let bars = Array("▁▂▃▄▅▆▇█")
}
