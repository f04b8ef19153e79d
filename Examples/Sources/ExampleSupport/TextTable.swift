/// A table for the terminal. Columns are as wide as their widest cell; numbers are aligned to the right.
public struct TextTable {
    public enum Alignment: Sendable {
        case left
        case right
    }

    private var columns: [(title: String, alignment: Alignment)]
    private var rows: [[String]] = []

    public init(_ columns: (String, Alignment)...) {
        self.columns = columns.map { (title: $0.0, alignment: $0.1) }
    }

    public mutating func add(_ cells: String...) {
        add(cells)
    }

    /// Missing cells are empty; superfluous ones are left out.
    public mutating func add(_ cells: [String]) {
        rows.append(columns.indices.map { $0 < cells.count ? cells[$0] : "" })
    }

    public var text: String {
        let widths = columns.indices.map { column in
            ([columns[column].title] + rows.map { $0[column] }).map(\.count).max() ?? 0
        }
        let rule = widths.map { String(repeating: "-", count: $0) }.joined(separator: "  ")
        let lines = [line(columns.map(\.title), widths), rule] + rows.map { line($0, widths) }
        return lines.joined(separator: "\n")
    }

    private func line(_ cells: [String], _ widths: [Int]) -> String {
        var line = ""
        for (column, cell) in cells.enumerated() {
            let space = String(repeating: " ", count: widths[column] - cell.count)
            line += columns[column].alignment == .left ? cell + space : space + cell
            line += "  "
        }
        // Trailing spaces would make files differ for no visible reason.
        while line.last == " " { line.removeLast() }
        return line
    }
}
