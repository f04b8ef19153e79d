import DiskURLCache
import Foundation

// How public types of this module print: see `PrintedByDescription`.

extension DiskURLCache.Head: PrintedByDescription {
    /// The status and the names of the header fields, in one line.
    package var printedText: String { "\(status), fields: \(HeaderFields(fields).printedNames)" }
}

extension DiskURLCache.Entry: PrintedByDescription {
    /// The URL, the status and the length of the body, in one line.
    package var printedText: String {
        let url = entry.metadata.url.flatMap { URL(string: $0) }?.printed ?? "an entry without its URL"
        return "\(url), status \(entry.metadata.http?.status ?? 0), \(bytes) bytes, variant \(variant)"
    }
}

extension DiskURLCache.Criteria: PrintedByDescription {
    /// Which entries are to be removed, in one line.
    package var printedText: String { "entries of \(scope)" }
}

extension DiskURLCache.Receiver: PrintedByDescription {
    /// The request whose answer is received, in one line.
    package var printedText: String { "receives the answer to \(request)" }
}
