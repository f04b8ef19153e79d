import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

struct Trim: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Removes the least recently used entries until a cache fits. Pinned entries are removed last.")

    @OptionGroup var cache: CacheDirectory

    @Option(help: "Bytes on disk, such as 50MB.")
    var to: Size

    @Flag(help: "Only list the entries that would be removed, in their order.")
    var dryRun = false

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let inspector = try cache.open()
        if dryRun { return try printPlan(try inspector.recordsToTrim(toBytes: to.bytes), asJSON: json) }
        let result = try inspector.trim(toBytes: to.bytes, progress: Progress("Removing:").show)
        let left = try inspector.records()
        if json {
            try printJSON(Removal(removed: result.removed, left: left.count, bytesOnDisk: result.bytesOnDisk))
        } else {
            show(
                "Removed \(result.removed) entries; \(left.count) are left. The directory takes \(byteCount(result.bytesOnDisk))."
            )
        }
        guard result.bytesOnDisk > to.bytes else { return }
        if left.isEmpty {
            if !json { show("No entry is left; the folders and index files stay.") }
        } else {
            throw Problem(
                "That is more than \(byteCount(to.bytes)): the rest could not be removed, was stored meanwhile, or is no record that a cache touches (see urlcache verify)."
            )
        }
    }
}

/// What a command has removed.
private struct Removal: Encodable {
    let removed: Int
    var left: Int?
    var bytesOnDisk: Int?
}

struct Remove: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Removes the entries that match.",
        discussion:
            "At least one filter is needed, or --all. Entries whose URL is not kept match no --host and no --url.")

    @OptionGroup var cache: CacheDirectory
    @OptionGroup var filter: Filter

    @Flag(help: "Every entry.")
    var all = false

    @Flag(help: "Records that are damaged.")
    var damaged = false

    @Flag(help: "Only list the entries that would be removed.")
    var dryRun = false

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        if all && damaged { throw ValidationError("--all means every entry, --damaged only some: give one of them.") }
        if all && !filter.isEmpty {
            throw ValidationError("--all means every entry, a filter such as --host only some: give one of them.")
        }
        if damaged && !filter.isEmpty {
            throw ValidationError("The URL of a damaged record is not known: --damaged takes no filter.")
        }
        if !all && !damaged && filter.isEmpty {
            throw ValidationError("Give a filter such as --host, or --all, or --damaged.")
        }
    }

    func run() throws {
        let inspector = try cache.open()
        let records = try inspector.records(
            verifyingBodies: damaged, progress: Progress("Reading records:").show
        ).filter { record in
            damaged ? record.problem?.code == .damaged : record.problem == nil && (all || filter.matches(record))
        }
        if dryRun { return try printPlan(records, asJSON: json) }
        let removed = inspector.remove(records, progress: Progress("Removing:").show)
        if json { try printJSON(Removal(removed: removed)) } else { show("Removed \(removed) entries.") }
        if removed < records.count {
            try checkWritable(cache.url())
            throw Problem("\(records.count - removed) could not be removed, or were replaced meanwhile.")
        }
    }
}

/// What a command would remove.
private func printPlan(_ records: [DiskURLCache.Inspector.Record], asJSON: Bool) throws {
    if asJSON {
        let now = Date()
        return try printJSON(records.map { RecordFacts($0, now: now) })
    }
    for record in records { show("\(record.url ?? record.fileName)") }
    show("\(records.count) entries would be removed.")
}

struct RebuildIndex: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes a new index from the records. The times of last use are lost.",
        discussion: "Rarely needed: a cache does this by itself if its index is missing or damaged.")

    @OptionGroup var cache: CacheDirectory

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let count = try cache.open().rebuildIndex()
        if json { try printJSON(["records": count]) } else { show("The new index holds \(count) records.") }
    }
}

struct Fill: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Loads URLs into a cache, for a program to ship with (Configuration.fallbackDirectories).",
        discussion: """
            Without arguments, URLs are read from standard input, one on each line. The exit status is 1 if a response is not in the cache \
            at the end. A program uses such a folder if it belongs to the program's user or to root; with --readable a program of another \
            user can read a folder that root has filled.
            """)

    @OptionGroup var cache: NamedDirectory

    @Argument(help: "http and https URLs.")
    var urls: [String] = []

    @Option(help: "Requests at a time.")
    var concurrency = 4

    @Flag(
        help: """
            Let every user read the cache (modes 0755 and 0644). Without this flag only its owner can, also what an earlier fill let others read.
            """)
    var readable = false

    @Flag(help: "Print JSON.")
    var json = false

    /// A response that is not in the cache.
    struct Failure: Encodable {
        let url: String
        /// Whether there was an answer, which is not stored.
        let hasAnswer: Bool
        let reason: String
    }

    struct Facts: Encodable {
        let directory: String
        let requested: Int
        let stored: Int
        let failures: [Failure]
    }

    func run() async throws {
        var lines = urls
        if lines.isEmpty { while let line = readLine() { lines.append(line) } }
        let requests = try lines.filter { !$0.isEmpty }.map { URLRequest(url: try webURL($0)) }
        guard !requests.isEmpty else { throw Problem("There is nothing to load.") }
        try cache.checkPlace()
        let target = DiskURLCache(memoryCapacity: 0, diskCapacity: .max, directory: cache.url)
        if let error = target.openingError { throw Problem("\(error)") }
        var problems: [Failure] = []
        let outcomes = await load(requests, through: target)
        target.flush()
        for (request, outcome) in zip(requests, outcomes) {
            let url = withoutCredentials(request.url?.absoluteString ?? "")
            switch outcome {
            case .failed(let why): problems.append(Failure(url: url, hasAnswer: false, reason: why))
            case .refused(let why): problems.append(Failure(url: url, hasAnswer: true, reason: why))
            case .stored where !target.contains(request):
                problems.append(Failure(url: url, hasAnswer: true, reason: "it could not be written."))
            case .stored: break
            }
        }
        let stored = requests.count - problems.count
        if json {
            try printJSON(
                Facts(directory: cache.directory, requested: requests.count, stored: stored, failures: problems))
        } else {
            for problem in problems {
                let mark = problem.hasAnswer ? colour("not stored", .warning) : colour("failed    ", .bad)
                show("\(mark)  \(problem.url): \(problem.reason)")
            }
            show("\(stored) of \(requests.count) are in \(cache.directory).")
        }
        try checkWritable(cache.url)
        try setModes()
        if !readable, !json { show("Only user \(geteuid()) can read it; --readable lets every user.") }
        if !problems.isEmpty { throw ExitCode(1) }
    }

    /// Of the folders and the records: a program that only reads a folder needs no other file.
    private func setModes() throws {
        let (folder, file): (mode_t, mode_t) = readable ? (0o755, 0o644) : (0o700, 0o600)
        let records = cache.url.appendingPathComponent("records").path
        let names = try FileManager.default.contentsOfDirectory(atPath: records)
        try setMode(folder, S_IFDIR, of: cache.url.path)
        try setMode(folder, S_IFDIR, of: records)
        for name in names { try setMode(file, S_IFREG, of: "\(records)/\(name)") }
    }

    /// Changes the mode only if the file has this kind and a single name: any other file does not belong to this cache.
    /// A program that uses the cache may have removed it meanwhile.
    private func setMode(_ mode: mode_t, _ kind: mode_t, of path: String) throws {
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        if file < 0, errno == ENOENT || !readable { return }
        guard file >= 0 else { throw Problem("\(path) cannot be opened", errno: errno) }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_mode & S_IFMT == kind, kind == S_IFDIR || status.st_nlink == 1 else {
            return
        }
        // What belongs to another user is theirs to close.
        guard readable || status.st_uid == geteuid() else { return }
        guard fchmod(file, mode) == 0 else { throw Problem("The mode of \(path) cannot be changed", errno: errno) }
    }

    private enum Outcome: Sendable {
        case stored
        case refused(String)
        case failed(String)
    }

    private func load(_ requests: [URLRequest], through target: DiskURLCache) async -> [Outcome] {
        await withTaskGroup(of: (Int, Outcome).self) { group in
            var outcomes = [Outcome](repeating: .failed("it was not loaded"), count: requests.count)
            var waiting = requests.indices[...]
            func startNext() {
                guard let index = waiting.popFirst() else { return }
                group.addTask { (index, await Self.load(requests[index], through: target)) }
            }
            for _ in 0..<min(max(1, concurrency), requests.count) { startNext() }
            for await (index, outcome) in group {
                outcomes[index] = outcome
                startNext()
            }
            return outcomes
        }
    }

    private static func load(_ request: URLRequest, through target: DiskURLCache) async -> Outcome {
        do {
            let answer = try await target.data(for: request)
            return answer.report.notStoredReason.map { .refused($0.description) } ?? .stored
        } catch {
            return .failed(words(for: error))
        }
    }
}

/// An absolute http or https URL.
func webURL(_ text: String) throws -> URL {
    guard let url = URL(string: text), ["http", "https"].contains(url.scheme?.lowercased()), url.host?.isEmpty == false
    else { throw Problem("\"\(text)\" is not an http or https URL.") }
    return url
}

/// A URL as it is printed: without user name and password.
func withoutCredentials(_ url: String) -> String {
    guard var parts = URLComponents(string: url), parts.user != nil || parts.password != nil else { return url }
    (parts.user, parts.password) = (nil, nil)
    return parts.string ?? url
}

/// The text of an error. Foundation's text for most codes says only that the load failed, so the code is added.
func words(for error: any Error) -> String {
    let error = error as NSError
    let text = error.localizedDescription
    return error.domain == NSURLErrorDomain ? "\(text) (URL error \(error.code))" : text
}

/// Throws if a cache's folders may not be written.
func checkWritable(_ directory: URL) throws {
    for path in [directory.path, directory.appendingPathComponent("records").path]
    where access(path, F_OK) == 0 && access(path, W_OK | X_OK) != 0 {
        throw Problem("\(path) cannot be written", errno: errno)
    }
}
