import DiskURLCache
import Foundation

// How public types of this module print: see `PrintedByDescription`.

extension DiskURLCache.EventLog: PrintedByDescription {
    /// The path of the log.
    package var printedText: String { "event log \(path)" }
}

extension DiskURLCache.Inspector: PrintedByDescription {
    /// The folder that is inspected.
    package var printedText: String { "inspector of \(directory.path)" }
}

extension DiskURLCache.Inspector.Record: PrintedByDescription {
    /// The file, the URL, the status and the length of the body, in one line.
    package var printedText: String {
        if let problem { return "\(fileName): \(problem)" }
        let url = url.flatMap { URL(string: $0) }?.printed ?? "without its URL"
        return "\(fileName): \(url), status \(status ?? 0), \(bytes) bytes"
    }
}

extension DiskURLCache.Simulation: PrintedByDescription {
    /// How many requests there are. URLs are not printed.
    package var printedText: String { "simulation of \(requests) requests, \(bytes) bytes" }
}
