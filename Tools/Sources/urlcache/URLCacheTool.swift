import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

@main
struct URLCacheTool: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "urlcache",
        abstract: "Looks into the directory of a DiskURLCache, also while a program uses it.",
        discussion: """
            Reading changes nothing and takes no lock. Only trim, remove, rebuild-index, fill and import change a cache. The exit \
            status is 0; or 1 if verify finds damage or a command cannot do its work; or 64 for wrong arguments. Begin with: \
            urlcache stats DIRECTORY, urlcache why URL. Without DIRECTORY a command takes the only cache in the user's folder for \
            caches (~/.cache/DiskURLCache on Linux), if there is one alone. Every command has --json. A terminal gets colours, \
            unless NO_COLOR is set.
            """,
        version: "0.1.0",
        subcommands: [
            List.self, Show.self, Stats.self, Verify.self, Report.self, Export.self, Watch.self, Top.self,
            Simulate.self,
            Trim.self, Remove.self, RebuildIndex.self, Fill.self, Import.self, Why.self, Diff.self, Demo.self,
        ])

    static func main() async {
        // A command that changes a cache is not to be ended in the middle, because nobody reads what it prints.
        signal(SIGPIPE, SIG_IGN)
        do {
            var command = try parseAsRoot()
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            try flushOutput()
        } catch {
            _ = fflush(nil)
            exit(withError: error)
        }
    }
}

/// The argument of most commands: the directory, or else the only standard one.
struct CacheDirectory: ParsableArguments {
    @Argument(
        help: "The cache's directory; by default the only one in the user's folder for caches.", completion: .directory)
    var directory: String?

    func url() throws -> URL { try directory.map { URL(fileURLWithPath: $0, isDirectory: true) } ?? Self.only.get() }

    func open() throws -> DiskURLCache.Inspector { try DiskURLCache.Inspector(directory: try url()) }

    /// The folder of the only program that has a cache in the standard place; printed when a command takes it.
    static let only: Result<URL, any Error> = Result {
        let folder = try search()
        showBeside("The cache is \(folder.path).")
        return folder
    }

    private static func search() throws -> URL {
        // Programs have folders beside that of this tool.
        let parent = DiskURLCache.defaultDirectory.deletingLastPathComponent()
        let names = (try? FileManager.default.contentsOfDirectory(atPath: parent.path)) ?? []
        let caches = names.sorted().map { parent.appendingPathComponent($0, isDirectory: true) }
            .filter { (try? DiskURLCache.Inspector(directory: $0)) != nil }
        guard let only = caches.first else {
            throw ValidationError("Name the cache's directory: there is no cache in \(parent.path).")
        }
        guard caches.count == 1 else {
            let names: [Shown] = caches.map { "\($0.path)" }
            throw ValidationError("Name one of these directories:\n" + names.joined("\n").text)
        }
        return only
    }
}

/// The argument of commands that make a cache: a directory that has to be named.
struct NamedDirectory: ParsableArguments {
    @Argument(help: "The cache's directory.", completion: .directory)
    var directory: String

    var url: URL { URL(fileURLWithPath: directory, isDirectory: true) }

    func open() throws -> DiskURLCache.Inspector { try DiskURLCache.Inspector(directory: url) }

    /// Accepts a new folder, an empty folder, or a cache. Any other folder may belong to a different program.
    func checkPlace() throws {
        var isFolder: ObjCBool = false
        guard FileManager.default.fileExists(atPath: url.path, isDirectory: &isFolder) else {
            let parent = url.deletingLastPathComponent().path
            if FileManager.default.fileExists(atPath: parent), access(parent, W_OK | X_OK) != 0 {
                throw Problem("\(directory) cannot be made", errno: errno)
            }
            return
        }
        if isFolder.boolValue, (try? FileManager.default.contentsOfDirectory(atPath: url.path))?.isEmpty == true {
            return try checkWritable(url)
        }
        do {
            _ = try open()
        } catch let error as DiskURLCache.Error where error.code == .notACache {
            throw Problem("\(error) Nothing was written: name a new folder, an empty folder or a cache.")
        }
        try checkWritable(url)
    }
}

/// The event log of a program.
struct ProgramLog: ParsableArguments {
    @OptionGroup var cache: CacheDirectory

    @Option(help: "The program's event log, if it is not in the cache's directory.", completion: .file())
    var log: String?

    func file() throws -> URL { try log.map { URL(fileURLWithPath: $0) } ?? Self.file(in: cache.url()) }

    static func file(in directory: URL) -> URL { directory.appendingPathComponent(DiskURLCache.EventLog.fileName) }

    /// The events so far. Throws if there is no log.
    static func entries(in file: URL) throws -> [LogEntry] {
        let entries = DiskURLCache.EventLog.entries(in: file)
        if entries.isEmpty { throw Problem(missing(file)) }
        return entries
    }

    static func missing(_ file: URL) -> Shown {
        FileManager.default.fileExists(atPath: file.path)
            ? "The event log at \(file.path) has no event yet."
            : "There is no event log at \(file.path): does the program hold an EventLog of its cache?"
    }
}

/// Chooses records for a command.
struct Filter: ParsableArguments {
    @Option(help: "Only this host.")
    var host: String?

    @Option(help: "Only URLs that contain this text.")
    var url: String?

    @Option(help: "Only this media type, such as image/png or image/*.")
    var type: String?

    @Option(help: "Only this status.")
    var status: Int?

    @Option(help: "Only entries with this tag.")
    var tag: String?

    @Option(help: "Only entries that were stored longer ago than this: 30s, 10m, 12h, 7d.")
    var olderThan: Span?

    @Option(help: "Only entries that were stored before this day or time, such as 2026-11-26 or 2026-11-26T12:00:00Z.")
    var storedBefore: Moment?

    @Option(help: "Only entries without a use for this time.")
    var unusedFor: Span?

    @Flag(help: "Only entries that are not fresh.")
    var stale = false

    var isEmpty: Bool {
        host == nil && url == nil && type == nil && status == nil && tag == nil && olderThan == nil
            && storedBefore == nil && unusedFor == nil && !stale
    }

    func validate() throws {
        guard let host, Self.name(of: host) == nil else { return }
        throw ValidationError(
            "\"\(host)\" is not a host: give the name alone, without scheme, port and path, as in \"example.com\".")
    }

    /// A host in the letters of URLs: an international name has several forms. Nil for a text that is no host.
    private static func name(of host: String) -> String? {
        let plain = host.removingPercentEncoding ?? host
        guard !plain.contains(where: { "/?#@: ".contains($0) }) || plain.hasPrefix("[") else { return nil }
        return URL(string: "http://\(plain)/")?.host?.lowercased()
    }

    /// An entry whose URL is not known matches no filter by host or URL.
    func matches(_ record: DiskURLCache.Inspector.Record, now: Date = Date()) -> Bool {
        if let host, record.host?.lowercased() != Self.name(of: host) { return false }
        if let url, !Self.spellings(of: url).contains(where: { record.url?.contains($0) == true }) { return false }
        if let type, !matches(type.lowercased(), record.contentType ?? "") { return false }
        if let status, record.status != status { return false }
        if let tag, !record.tags.contains(tag) { return false }
        if let olderThan, now.timeIntervalSince(record.storedAt ?? .distantPast) < olderThan.seconds { return false }
        if let storedBefore, record.storedAt ?? .distantPast >= storedBefore.date { return false }
        if let unusedFor, now.timeIntervalSince(record.lastUsed ?? .distantPast) < unusedFor.seconds { return false }
        if stale, record.isFresh(at: now) { return false }
        return true
    }

    /// A part of a URL as it is written, and as URLs have it.
    private static func spellings(of part: String) -> [String] {
        let allowed = CharacterSet.urlQueryAllowed.union(CharacterSet(charactersIn: "%#"))
        let url = part.contains("://") ? URL(string: part)?.absoluteString : nil
        return [part, url, part.addingPercentEncoding(withAllowedCharacters: allowed)].compactMap { $0 }
    }

    private func matches(_ pattern: String, _ type: String) -> Bool {
        pattern.hasSuffix("/*") ? type.hasPrefix(pattern.dropLast()) : type == pattern
    }
}

extension DiskURLCache.Inspector.Record {
    var host: String? { url.flatMap { URL(string: $0)?.host } }

    func field(_ name: String) -> String? { fields.first { $0.name.lowercased() == name }?.value }

    /// The media type without parameters, in lower case; nil if the response has none.
    var contentType: String? {
        field("content-type").map { $0.prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces).lowercased() }
    }

    /// Names of the request fields by which the response was selected.
    var varyFields: [String] {
        let names = field("vary")?.split(separator: ",") ?? []
        return Set(names.map { $0.trimmingCharacters(in: .whitespaces).lowercased() }).sorted()
    }

    func isFresh(at date: Date) -> Bool { freshUntil.map { $0 > date } ?? false }
}

/// A time such as `90s`, `10m`, `12h`, `7d`.
struct Span: ExpressibleByArgument, CustomStringConvertible {
    let seconds: TimeInterval

    init(seconds: TimeInterval) { self.seconds = seconds }

    /// As it is written in help for a default.
    var description: String { span(seconds) }

    init?(argument: String) {
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
        guard let unit = argument.last.flatMap({ units[$0] }), let number = Double(argument.dropLast()), number >= 0,
            (number * unit).isFinite
        else { return nil }
        seconds = number * unit
    }
}

/// The beginning of a day, or a time, in the form of ISO 8601, in UTC.
struct Moment: ExpressibleByArgument {
    let date: Date

    init?(argument: String) {
        let text = argument.contains("T") ? argument : argument + "T00:00:00Z"
        guard let date = try? Date(text, strategy: .iso8601) else { return nil }
        self.date = date
    }
}

/// A size such as `500KB`, `50MB`, `2GB`, or a number of bytes. Units of 1,024.
struct Size: ExpressibleByArgument {
    let bytes: Int

    init?(argument: String) {
        let text = argument.uppercased()
        let units = [("KB", 10), ("MB", 20), ("GB", 30), ("K", 10), ("M", 20), ("G", 30), ("B", 0)]
        let unit = units.first { text.hasSuffix($0.0) }
        guard let number = Double(text.dropLast(unit?.0.count ?? 0)), number >= 0 else { return nil }
        let value = number * Double(1 << (unit?.1 ?? 0))
        guard value < Double(Int.max) else { return nil }
        bytes = Int(value)
    }
}
