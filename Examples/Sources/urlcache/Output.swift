import Foundation

/// Shows how far long work is, on a terminal only and only when it takes a while.
final class Progress {
    private let label: String
    private let start = Date()
    private var lastShown = Date.distantPast
    private let isShown = isatty(STDERR_FILENO) == 1

    init(_ label: String) {
        self.label = label
    }

    func show(_ done: Int, _ total: Int) {
        let now = Date()
        guard isShown, now.timeIntervalSince(start) > 0.5 else { return }
        if done < total {
            guard now.timeIntervalSince(lastShown) > 0.1 else { return }
            lastShown = now
            FileHandle.standardError.write(Data("\r\(label) \(done) of \(total)".utf8))
        } else {
            // Clears the line: the result follows.
            FileHandle.standardError.write(Data("\r\u{1B}[K".utf8))
        }
    }
}

/// `1.2 KB`, in units of 1,024.
func byteCount(_ bytes: Int) -> String {
    guard bytes >= 1_024 else { return "\(bytes) B" }
    var value = Double(bytes) / 1_024
    for unit in ["KB", "MB", "GB"] {
        if value < 1_024 { return String(format: value < 10 ? "%.1f " : "%.0f ", value) + unit }
        value /= 1_024
    }
    return String(format: "%.1f TB", value)
}

/// `5s`, `12m`, `3h`, `7d`.
func span(_ seconds: TimeInterval) -> String {
    let seconds = abs(seconds)
    if seconds < 100 { return "\(Int(seconds))s" }
    if seconds < 6_000 { return "\(Int(seconds / 60))m" }
    if seconds < 172_800 { return "\(Int(seconds / 3_600))h" }
    return seconds < 1e10 ? "\(Int(seconds / 86_400))d" : "never"
}

/// Text of others as it may appear on a terminal: no control characters.
func printable(_ text: String) -> String {
    String(String.UnicodeScalarView(text.unicodeScalars.map { CharacterSet.controlCharacters.contains($0) ? "?" : $0 }))
}

/// Columns as wide as their widest cell; the last one as long as it is. Numbers to the right.
func columns(_ titles: [String], rightAligned: Set<Int>, _ rows: [[String]]) -> String {
    let widths = titles.indices.map { column in
        ([titles] + rows).map { $0[column].count }.max() ?? 0
    }
    return ([titles] + rows).map { row in
        row.enumerated().map { column, cell in
            let space = String(repeating: " ", count: widths[column] - cell.count)
            if rightAligned.contains(column) { return space + cell }
            return column == titles.count - 1 ? cell : cell + space
        }.joined(separator: "  ")
    }.joined(separator: "\n")
}

/// JSON for other programs.
func printJSON(_ value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    encoder.dateEncodingStrategy = .iso8601
    FileHandle.standardOutput.write(try encoder.encode(value) + Data("\n".utf8))
}
