import Foundation

/// The rows of a run as a Markdown table, for the page that shows them.
struct ResultTable {
    private let document: Document

    init(_ document: Document) {
        self.document = document
    }

    private static let start = "<!-- results: written by Plots -->"
    private static let end = "<!-- end of results -->"

    /// The page with the table between its markers; unchanged if it has no markers.
    func replace(in page: String) -> String {
        guard let start = page.range(of: Self.start), let end = page.range(of: Self.end),
            start.upperBound <= end.lowerBound
        else { return page }
        return page[..<start.upperBound] + "\n" + markdown + "\n" + page[end.lowerBound...]
    }

    private var markdown: String {
        var lines: [String] = []
        for name in ["date", "processor", "kernel", "file system", "Swift", "load at the start", "run", "entries"] {
            if let value = document.setup[name] { lines.append("- **\(name)**: \(value)") }
        }
        lines += [
            "", "| Row | Median | p99 | n | Against | Ratio | Target | Met |", "|---|---|---|---|---|---|---|---|",
        ]
        for row in document.rows {
            let values = "\(number(row.median)) \(row.unit) | \(number(row.p99)) | \(row.n)"
            if row.comparisons.isEmpty || row.target != nil {
                let target = row.target.map { "≤ \(number($0)) \(row.unit)" } ?? ""
                let isMet = row.target.map { row.median <= $0 ? "yes" : "**no**" } ?? ""
                lines.append("| \(row.name) | \(values) | | | \(target) | \(isMet) |")
            }
            for comparison in row.comparisons {
                let isFloor = comparison.isFloor == true
                let target = comparison.target.map { "\(isFloor ? "≥" : "≤") \(number($0))" } ?? ""
                let isMet = comparison.target.map {
                    (isFloor ? comparison.ratio >= $0 : comparison.ratio <= $0) ? "yes" : "**no**"
                }
                lines.append(
                    "| \(row.name) | \(values) | \(comparison.peer): \(number(comparison.median)) | "
                        + "\(number(comparison.ratio)) | \(target) | \(isMet ?? "") |")
            }
        }
        return lines.joined(separator: "\n")
    }

    private func number(_ value: Double) -> String { SVG.label(value) }
}
