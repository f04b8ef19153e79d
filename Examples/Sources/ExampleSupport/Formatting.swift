import Foundation

/// `12,345`
public func grouped(_ number: Int) -> String {
    var digits = String(number.magnitude)
    var groups: [String] = []
    while digits.count > 3 {
        groups.insert(String(digits.suffix(3)), at: 0)
        digits.removeLast(3)
    }
    return (number < 0 ? "-" : "") + ([digits] + groups).joined(separator: ",")
}

/// `1.2 KB`, in units of 1,024.
public func byteCount(_ bytes: Int) -> String {
    guard bytes >= 1_024 else { return "\(bytes) B" }
    var value = Double(bytes) / 1_024
    for unit in ["KB", "MB", "GB"] {
        if value < 1_024 { return String(format: value < 10 ? "%.1f %@" : "%.0f %@", value, unit) }
        value /= 1_024
    }
    return String(format: "%.1f TB", value)
}

/// `0.31 ms`
public func milliseconds(_ seconds: TimeInterval) -> String {
    String(format: seconds < 0.01 ? "%.2f ms" : "%.0f ms", seconds * 1_000)
}

/// Writes to standard error, so that a pipe gets only the result.
public func complain(_ message: String) {
    FileHandle.standardError.write(Data((message + "\n").utf8))
}

/// Exits with status 1 if the condition is false, so that a mistake in an example fails in CI.
public func expect(_ condition: Bool, _ message: @autoclosure () -> String) {
    guard !condition else { return }
    complain("Not as expected: \(message())")
    exit(1)
}
