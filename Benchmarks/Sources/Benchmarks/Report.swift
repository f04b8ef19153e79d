import Foundation

/// One line of the table: what was measured, and each peer measured in turns with it.
struct Row: Codable {
    struct Comparison: Codable {
        var peer: String
        var median: Double
        var p99: Double
        var n: Int
        /// Median of the row by median of the peer.
        var ratio: Double
        /// The ratio aimed at: at most this, or at least where `isFloor`.
        var target: Double?
        var isFloor = false

        var isMet: Bool? { target.map { isFloor ? ratio >= $0 : ratio <= $0 } }
    }

    var name: String
    var unit: String
    var median: Double
    var p99: Double
    var n: Int
    /// A bound on the median itself, where the row has one.
    var target: Double?
    var comparisons: [Comparison] = []
    var note: String?

    var isMet: Bool? {
        let verdicts = comparisons.compactMap(\.isMet) + (target.map { [median <= $0] } ?? [])
        return verdicts.isEmpty ? nil : verdicts.allSatisfy { $0 }
    }

    /// A row of samples; the targets are for the peers in their order.
    init(_ name: String, _ samples: [Samples], targets: [Double?] = [], note: String? = nil) {
        self.init(name, samples[0], note: note)
        for (index, peer) in samples.dropFirst().enumerated() {
            compare(with: peer, target: index < targets.count ? targets[index] : nil)
        }
    }

    init(_ name: String, _ samples: Samples, target: Double? = nil, note: String? = nil) {
        self.name = name
        unit = "µs"
        median = samples.median
        p99 = samples.p99
        n = samples.sorted.count
        self.target = target
        self.note = note
    }

    /// A number that is not a time.
    init(_ name: String, value: Double, unit: String, target: Double? = nil, note: String? = nil) {
        self.name = name
        self.unit = unit
        median = value
        p99 = value
        n = 1
        self.target = target
        self.note = note
    }

    /// Throughput: operations in a microsecond, or in a second, of samples that hold `operations` each. The targets are
    /// the least ratios.
    init(
        throughput name: String, _ samples: [Samples], operations: [Int], perSecond: Bool, targets: [Double?]
    ) {
        let rates = zip(samples, operations).map { Double($1) / $0.median * (perSecond ? 1_000_000 : 1) }
        self.init(name, value: rates[0], unit: perSecond ? "/s" : "/µs")
        n = samples[0].sorted.count
        for peer in 1..<samples.count {
            comparisons.append(
                Comparison(
                    peer: samples[peer].name, median: rates[peer], p99: rates[peer], n: samples[peer].sorted.count,
                    ratio: rates[0] / rates[peer], target: peer <= targets.count ? targets[peer - 1] : nil,
                    isFloor: true))
        }
    }

    mutating func compare(with peer: Samples, target: Double?) {
        comparisons.append(
            Comparison(
                peer: peer.name, median: peer.median, p99: peer.p99, n: peer.sorted.count, ratio: median / peer.median,
                target: target))
    }
}

/// Collects the rows, prints each as it comes, and writes them all as JSON.
final class Report {
    private struct Document: Encodable {
        var setup: [String: String]
        var rows: [Row]
    }

    private(set) var rows: [Row] = []
    /// Groups that could not be measured.
    private(set) var failures: [String] = []
    private let setup: [(String, String)]

    init(setup: [(String, String)]) {
        self.setup = setup
        for (name, value) in setup { print("\(name): \(value)") }
    }

    func begin(_ section: String) {
        print("\n\(section)")
        print(
            "  " + "row".padded(50) + "median".leading(12) + "p99".leading(12) + "n".leading(7)
                + "  peer".padded(42) + "median".leading(12) + "ratio".leading(8) + "target".leading(9))
    }

    func add(_ row: Row) {
        rows.append(row)
        var line =
            "  " + row.name.padded(50) + "\(row.median.short) \(row.unit)".leading(12) + row.p99.short.leading(12)
            + "\(row.n)".leading(7)
        if let target = row.target {
            line += "  " + "(itself)".padded(60) + "≤ \(target.short)".leading(9) + mark(row.median <= target)
        }
        print(line)
        for comparison in row.comparisons {
            var line = String(repeating: " ", count: 83) + "  " + comparison.peer.padded(40)
            line += comparison.median.short.leading(12) + comparison.ratio.short.leading(8)
            if let target = comparison.target {
                line += "\(comparison.isFloor ? "≥" : "≤") \(target.short)".leading(9) + mark(comparison.isMet)
            }
            print(line)
        }
        if let note = row.note { print("      \(note)") }
        fflush(nil)
    }

    func fail(_ group: String, _ error: any Error) {
        failures.append(group)
        print("  FAILED: \(group): \(error)")
    }

    func write(to path: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "inf", negativeInfinity: "-inf", nan: "nan")
        let document = Document(setup: Dictionary(setup) { first, _ in first }, rows: rows)
        try encoder.encode(document).write(to: URL(fileURLWithPath: path))
    }

    func printSummary() {
        let judged = rows.filter { $0.isMet != nil }
        print("\n\(judged.filter { $0.isMet == true }.count) of \(judged.count) rows meet their target.")
        if !failures.isEmpty { print("Not measured, for an error: \(failures.joined(separator: "; ")).") }
    }

    private func mark(_ isMet: Bool?) -> String { isMet.map { $0 ? "  met" : "  missed" } ?? "" }
}

extension Double {
    /// Three significant digits.
    var short: String {
        switch abs(self) {
        case 0: "0"
        case ..<10: String(format: "%.2f", self)
        case ..<100: String(format: "%.1f", self)
        default: String(format: "%.0f", self)
        }
    }
}

extension String {
    func padded(_ width: Int) -> String {
        self + String(repeating: " ", count: Swift.max(1, width - count))
    }

    func leading(_ width: Int) -> String {
        String(repeating: " ", count: Swift.max(1, width - count)) + self
    }
}
