import ArgumentParser
import Foundation

/// Shows the progress of long work, on a terminal only.
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
            try? FileHandle.standardError.write(contentsOf: Data("\r\(label) \(done) of \(total)".utf8))
        } else {
            // Clears the line: the result follows.
            try? FileHandle.standardError.write(contentsOf: Data("\r\u{1B}[K".utf8))
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

/// Whether a terminal may obey the scalar as a command, or reverse the line because of it: C0, DEL, C1, format
/// characters (among them those that change the direction of text), and separators of lines and paragraphs.
func isControl(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator: true
    default: false
    }
}

/// What a colour says.
enum Colour: String {
    case good = "32"
    case warning = "33"
    case bad = "31"
    case title = "1"
    case quiet = "2"
}

/// Whether standard output is a terminal that shows colours, and its user wants them (https://no-color.org).
let hasColour: Bool = {
    let environment = ProcessInfo.processInfo.environment
    return isatty(STDOUT_FILENO) == 1 && (environment["NO_COLOR"] ?? "").isEmpty && environment["TERM"] != "dumb"
}()

/// Text for a terminal, the only form in which a command prints for people (`show`). What stands in the source is the
/// tool's own; what is put into it comes from outside (an origin, an event log, a folder) and loses its control
/// characters, unless it is such a text itself.
struct Shown: ExpressibleByStringInterpolation {
    struct StringInterpolation: StringInterpolationProtocol {
        fileprivate var text = ""

        init(literalCapacity: Int, interpolationCount: Int) {}

        mutating func appendLiteral(_ literal: String) { text += literal }
        mutating func appendInterpolation(_ value: some Any) { text += printable("\(value)") }
        mutating func appendInterpolation(_ shown: Shown) { text += shown.text }
    }

    let text: String

    init(stringLiteral text: String) { self.text = text }
    init(stringInterpolation: StringInterpolation) { text = stringInterpolation.text }
    fileprivate init(own text: String) { self.text = text }
    /// Lines from outside, such as a body: their line feeds and tabs stay.
    init(lines text: String) { self.text = printable(text, keeping: ["\n", "\t"]) }

    static func + (left: Shown, right: Shown) -> Shown { Shown(own: left.text + right.text) }
}

extension Sequence<Shown> {
    func joined(_ separator: Shown) -> Shown { Shown(own: map(\.text).joined(separator: separator.text)) }
}

/// Prints a line, or several.
func show(_ text: Shown) { print(text.text) }

/// Prints a line beside the output of the command, which stays what it is.
func showBeside(_ text: Shown) { try? FileHandle.standardError.write(contentsOf: Data((text.text + "\n").utf8)) }

/// The text in a colour, on a terminal that has some.
func colour(_ text: Shown, _ colour: Colour) -> Shown {
    hasColour && !text.text.isEmpty ? Shown(own: "\u{1B}[\(colour.rawValue)m\(text.text)\u{1B}[0m") : text
}

/// The number of characters that a terminal shows of a text with colours.
private func shownLength(_ shown: Shown) -> Int {
    var length = 0
    var isCommand = false
    for character in shown.text {
        if character == "\u{1B}" { isCommand = true }
        if !isCommand { length += 1 }
        if character == "m" { isCommand = false }
    }
    return length
}

/// The text with spaces added: on the left for a negative width.
func padded(_ text: Shown, _ width: Int) -> Shown {
    let space = Shown(own: String(repeating: " ", count: max(0, abs(width) - shownLength(text))))
    return width < 0 ? space + text : text + space
}

/// Text from outside without control characters.
private func printable(_ text: String, keeping kept: Set<Unicode.Scalar> = []) -> String {
    String(
        String.UnicodeScalarView(text.unicodeScalars.map { isControl($0) && !kept.contains($0) ? "?" : $0 }))
}

/// JSON with all control characters escaped; the encoder leaves some in strings. The line feeds outside of strings
/// stay.
func escapingControls(_ json: Data) -> String {
    String(decoding: json, as: UTF8.self).unicodeScalars.reduce(into: "") { text, scalar in
        if isControl(scalar), scalar != "\n" {
            for unit in String(scalar).utf16 { text += String(format: "\\u%04x", Int(unit)) }
        } else {
            text.unicodeScalars.append(scalar)
        }
    }
}

/// Columns as wide as their widest cell, except for the last one, which is not padded. Numbers are aligned to the
/// right.
func columns(_ titles: [String], rightAligned: Set<Int>, _ rows: [[Shown]]) -> Shown {
    let lines = [titles.map { colour("\($0)", .title) }] + rows
    let widths = titles.indices.map { column in lines.map { shownLength($0[column]) }.max() ?? 0 }
    return lines.map { row in
        row.enumerated().map { column, cell in
            if rightAligned.contains(column) { return padded(cell, -widths[column]) }
            return column == titles.count - 1 ? cell : padded(cell, widths[column])
        }.joined("  ")
    }.joined("\n")
}

/// JSON for other programs.
/// - Parameter isLine: whether it is one line among others.
func printJSON(_ value: some Encodable, isLine: Bool = false) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if !isLine { encoder.outputFormatting.insert(.prettyPrinted) }
    encoder.dateEncodingStrategy = .iso8601
    print(escapingControls(try encoder.encode(value)))
}

/// The reason why a command cannot do its work, as text.
struct Problem: Error, CustomStringConvertible {
    let description: String

    init(_ text: Shown) {
        description = text.text
    }

    /// Adds the system's text for the error number.
    init(_ what: Shown, errno: Int32) {
        self.init("\(what): \(String(cString: strerror(errno))).")
    }
}

/// Replaces a file's content, or writes to a device such as `/dev/stdout`. A file has mode 0600, since it holds URLs
/// and bodies. A symbolic link and a file with a second name are left alone: another user may have put them there.
func write(_ data: Data, toFile path: String) throws {
    if path == "/dev/stdout" { return try writeToOutput(data) }
    let file = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o600)
    if file < 0, errno == ELOOP { throw Problem("\(path) is a symbolic link: name the file itself.") }
    guard file >= 0 else { throw Problem("\(path) cannot be written", errno: errno) }
    defer { close(file) }
    var status = stat()
    guard fstat(file, &status) == 0 else { throw Problem("\(path) cannot be written", errno: errno) }
    if status.st_mode & S_IFMT == S_IFREG {
        guard status.st_nlink == 1 else { throw Problem("\(path) has a second name, which would change, too.") }
        guard fchmod(file, 0o600) == 0, ftruncate(file, 0) == 0 else {
            throw Problem("\(path) cannot be written", errno: errno)
        }
    }
    try write(data, to: file, named: path)
}

/// Bytes to standard output.
func writeToOutput(_ data: Data) throws {
    try write(data, to: STDOUT_FILENO, named: "Standard output")
}

private func write(_ data: Data, to file: Int32, named name: String) throws {
    try data.withUnsafeBytes { bytes in
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = write(file, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw unwritable(name, errno) }
            rest = rest.dropFirst(count)
        }
    }
}

/// Writes the bytes that `print` has buffered. Throws if the disk is full or the pipe has no reader.
func flushOutput() throws {
    if fflush(nil) != 0 { throw unwritable("Standard output", errno) }
}

/// The end of a command whose output cannot be written. `urlcache list | head` is no mistake of anybody: nothing is
/// said, and the status is that of a program which a pipe without a reader ends.
private func unwritable(_ name: String, _ error: Int32) -> any Error {
    error == EPIPE ? ExitCode(128 + SIGPIPE) : Problem("\(name) cannot be written", errno: error)
}
