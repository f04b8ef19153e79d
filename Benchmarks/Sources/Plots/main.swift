import Foundation

// SVG plots from the JSON of a run; with a third argument, the run's table goes between the markers of that page too.
//
//     swift run -c release --package-path Benchmarks Plots FILE.json DIRECTORY [PAGE.md]

struct Document: Decodable {
    struct Row: Decodable {
        struct Comparison: Decodable {
            var peer: String
            var median: Double
            var ratio: Double
            var target: Double?
            var isFloor: Bool?
        }

        var name: String
        var unit: String
        var median: Double
        var p99: Double
        var n: Int
        var target: Double?
        var comparisons: [Comparison]
    }

    var setup: [String: String]
    var rows: [Row]
}

guard (3...4).contains(CommandLine.arguments.count) else {
    print("usage: Plots FILE.json DIRECTORY [PAGE.md]")
    exit(64)
}
let decoder = JSONDecoder()
// Ratios to nothing, in the spelling of the report.
decoder.nonConformingFloatDecodingStrategy = .convertFromString(
    positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
let document = try decoder.decode(
    Document.self, from: Data(contentsOf: URL(fileURLWithPath: CommandLine.arguments[1])))
let directory = URL(fileURLWithPath: CommandLine.arguments[2], isDirectory: true)
try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)

func write(_ plot: String, to name: String) throws {
    try plot.write(to: directory.appendingPathComponent(name), atomically: true, encoding: .utf8)
    print(directory.appendingPathComponent(name).path)
}

// Each comparison with a target is a bar: its ratio divided by the target, so that it should stay below 1 (for a floor,
// above).
var bars: [Bar] = []
for row in document.rows {
    for comparison in row.comparisons {
        guard let target = comparison.target else { continue }
        let share = comparison.isFloor == true ? target / comparison.ratio : comparison.ratio / target
        bars.append(Bar(label: "\(row.name) / \(comparison.peer)", value: share))
    }
}
if !bars.isEmpty {
    try write(
        BarPlot(title: "Ratio by target: at most 1 is met", bars: bars, line: 1).svg, to: "performance-targets.svg")
}

// Reads of 4 KB by every side that was measured, in microseconds.
let reads = document.rows.filter { $0.name.hasPrefix("disk hit, body only") }.flatMap { row in
    [Bar(label: row.name, value: row.median)]
        + row.comparisons.map { Bar(label: "  \($0.peer)", value: $0.median) }
}
if !reads.isEmpty {
    try write(BarPlot(title: "Reads, µs (median)", bars: reads, line: nil).svg, to: "performance-reads.svg")
}

let stores = document.rows.filter { $0.name.hasPrefix("store, drained") }.flatMap { row in
    [Bar(label: row.name, value: row.median)]
        + row.comparisons.map { Bar(label: "  \($0.peer)", value: $0.median) }
}
if !stores.isEmpty {
    try write(
        BarPlot(title: "Stores drained to disk, µs each (median)", bars: stores, line: nil).svg,
        to: "performance-stores.svg")
}

// Costs by size and by count, if the run had --sweep.
for (prefix, title, file) in [
    ("sweep: read by size, ", "Read by body size (KB), µs", "performance-size.svg"),
    ("sweep: read by entries, ", "Read of 1 KB by entry count, µs", "performance-entries.svg"),
    ("sweep: store by entries, ", "Store of 1 KB, drained, by entry count, µs", "performance-store-entries.svg"),
] {
    let rows = document.rows.filter { $0.name.hasPrefix(prefix) }
    func position(_ row: Document.Row) -> Double {
        Double(row.name.dropFirst(prefix.count).filter(\.isNumber)) ?? 1
    }
    var lines = [LinePlot.Line(label: "DiskURLCache", points: rows.map { (position($0), $0.median) })]
    for peer in Set(rows.flatMap { $0.comparisons.map(\.peer) }).sorted() {
        let points = rows.compactMap { row in
            row.comparisons.first { $0.peer == peer }.map { (position(row), $0.median) }
        }
        lines.append(LinePlot.Line(label: peer, points: points))
    }
    if rows.count > 1 { try write(LinePlot(title: title, lines: lines).svg, to: file) }
}

if CommandLine.arguments.count == 4 {
    let page = URL(fileURLWithPath: CommandLine.arguments[3])
    let text = try String(contentsOf: page, encoding: .utf8)
    try ResultTable(document).replace(in: text).write(to: page, atomically: true, encoding: .utf8)
    print(page.path)
}
