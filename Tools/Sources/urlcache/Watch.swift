import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

struct Watch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the hits and misses of a running program as they happen.",
        discussion: "The program must hold an EventLog of its cache.")

    @OptionGroup var program: ProgramLog

    @Flag(help: "Show the events of the log and exit.")
    var once = false

    @Flag(help: "Print JSON: an object on each line.")
    var json = false

    func run() async throws {
        let file = try program.file()
        if once {
            for entry in try ProgramLog.entries(in: file) { try output(entry) }
            return
        }
        if !FileManager.default.fileExists(atPath: file.path) {
            showBeside(ProgramLog.missing(file) + " Waiting.")
        }
        var tail = Tail(file)
        while true {
            for entry in tail.newEntries() { try output(entry) }
            // So that each line is visible at once, also in a pipe. It fails if the pipe has no reader.
            try flushOutput()
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    private func output(_ entry: LogEntry) throws {
        let line = Line(entry)
        if json { try printJSON(line, isLine: true) } else { show(line.text) }
    }
}

/// The parts of an event that are shown.
struct Line: Encodable {
    let at: Date
    var what: String
    var url: URL?
    var seconds: TimeInterval?
    var bytes: Int?
    var reason: String?
    private let tone: Colour?

    private enum CodingKeys: CodingKey { case at, what, url, seconds, bytes, reason }

    init(_ entry: LogEntry) {
        at = entry.date
        switch entry.event {
        case .load(let load):
            (what, reason) = load.inWords
            url = load.url
            seconds = load.duration
            bytes = load.bytes
            tone = load.tone
        case .stored(let url, let bytes, let inMemoryOnly):
            what = "stored"
            self.url = url
            self.bytes = bytes
            reason = inMemoryOnly ? "in memory only" : nil
            tone = .quiet
        case .notStored(let url, let why):
            what = "not stored"
            self.url = url
            reason = why.description
            tone = .warning
        case .invalidated(let url, let why):
            what = "invalidated"
            self.url = url
            reason = why.description
            tone = nil
        case .evicted(let entries, let bytes):
            what = "evicted"
            self.bytes = bytes
            reason = entries == 1 ? "1 entry" : "\(entries) entries"
            tone = .quiet
        case .problem(let error):
            what = "problem"
            reason = error.description
            tone = .bad
        @unknown default:
            what = "other"
            reason = "\(entry.event)"
            tone = nil
        }
    }

    /// The line for people.
    var text: Shown {
        let clock = DateFormatter()
        clock.dateFormat = "HH:mm:ss.SSS"
        let duration = seconds.map { String(format: "%.2f ms", $0 * 1_000) } ?? ""
        let size = bytes.map(byteCount) ?? ""
        let reason: Shown = reason.map { "  [\($0)]" } ?? ""
        let outcome = padded("\(what)", 20)
        let facts: Shown = "\(padded("\(duration)", -11))  \(padded("\(size)", -8))"
        let shownOutcome = tone.map { colour(outcome, $0) } ?? outcome
        return "\(clock.string(from: at))  \(shownOutcome)  \(facts)  \(url?.absoluteString ?? "")\(reason)"
    }
}

extension DiskURLCache.Report {
    /// The outcome in one or two words, and its reason.
    var inWords: (what: String, why: String?) {
        switch outcome {
        case .hit(let layer): ("hit (\(layer))", nil)
        case .staleHit(let layer, let reason): ("stale (\(layer))", reason.description)
        case .revalidated(let layer): ("revalidated (\(layer))", nil)
        case .expired(let reason): ("expired", reason.description)
        case .miss(let reason): ("miss", reason.description)
        case .bypass(let reason): ("bypass", reason.description)
        case .failed: ("failed", error.map { words(for: $0) })
        case .notAllowed(let reason): ("failed", "no request was allowed, and \(reason)")
        @unknown default: ("\(outcome)", nil)
        }
    }
}

extension DiskURLCache.Report {
    /// Green for an answer from the cache, yellow for one from the network.
    var tone: Colour? {
        switch outcome {
        case .hit, .staleHit, .revalidated: .good
        case .expired, .miss: .warning
        case .failed, .notAllowed: .bad
        case .bypass: nil
        @unknown default: nil
        }
    }
}

/// Reads a log while it grows. When the log is replaced by a new file, reads the old one to its end, and then the new
/// one from its beginning.
struct Tail {
    private let file: URL
    private var handle: FileHandle?
    private var identity: UInt64?
    private var rest = Data()

    init(_ file: URL) {
        self.file = file
        open()
        // Begins with the events from now on.
        _ = try? handle?.seekToEnd()
    }

    private var pathsIdentity: UInt64? {
        let attributes = try? FileManager.default.attributesOfItem(atPath: file.path)
        return (attributes?[.systemFileNumber] as? NSNumber)?.uint64Value
    }

    private mutating func open() {
        handle = try? FileHandle(forReadingFrom: file)
        var status = stat()
        // That of the file that was opened: the path may have another one by now.
        identity = handle.flatMap { fstat($0.fileDescriptor, &status) == 0 ? UInt64(status.st_ino) : nil }
        rest = Data()
    }

    mutating func newEntries() -> [LogEntry] {
        var entries = readOn()
        if let new = pathsIdentity, new != identity {
            // What was written to the old file since it was read.
            entries += readOn()
            open()
            entries += readOn()
        }
        return entries
    }

    private mutating func readOn() -> [LogEntry] {
        guard let handle else { return [] }
        let offset = (try? handle.offset()) ?? 0
        let wasCut = (try? handle.seekToEnd()).map { $0 < offset } == true
        if wasCut { rest = Data() }
        try? handle.seek(toOffset: wasCut ? 0 : offset)
        guard let data = try? handle.readToEnd() else { return [] }
        rest.append(data)
        guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else { return [] }
        let lines = Data(rest[...end])
        rest = Data(rest[rest.index(after: end)...])
        return DiskURLCache.EventLog.entries(from: lines)
    }
}
