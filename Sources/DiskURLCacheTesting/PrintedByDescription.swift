import DiskURLCache
import Foundation

// How public types of this module print: see `PrintedByDescription`.

extension DiskURLCache.StubOrigin: PrintedByDescription {
    /// The URL, and how many requests came.
    package var printedText: String { "\(url.printed), \(requests.count) requests" }
}

extension DiskURLCache.StubOrigin.Response: PrintedByDescription {
    /// The status, the names of the header fields and the length of the body, in one line.
    package var printedText: String {
        "\(status), fields: \(fields.keys.sorted().joined(separator: ", ")), body: \(body.count) bytes"
    }
}

extension DiskURLCache.TestClock: PrintedByDescription {
    /// The time that the clock shows.
    package var printedText: String { "\(date)" }
}

extension DiskURLCache.TestDisk: PrintedByDescription {
    /// The folder, and how the disk fails.
    package var printedText: String { "\(folder.path), \(fault.map { "\($0)" } ?? "works")" }
}

extension DiskURLCache.Cassette: PrintedByDescription {
    /// The folder, and how many answers are in it.
    package var printedText: String { "\(folder.path), \(count) answers" }
}
