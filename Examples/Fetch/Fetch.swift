import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A command-line tool with a cache, and with commands for its cache: `swift run --package-path Examples Fetch URL`.
///
/// The folder is the library's default one: `DiskURLCache/Fetch` in `XDG_CACHE_HOME`, or else in `~/.cache`.
@main struct Fetch: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "fetch", abstract: "Loads a URL through a cache that the next run uses, too.",
        usage: """
            fetch URL [--output FILE | --resume FILE] [--no-cache | --offline] [--max-stale TIME] [--cache-status]
            fetch cache list | stats | why URL | clear [--host HOST]
            """,
        subcommands: [Load.self, CacheCommands.self], defaultSubcommand: Load.self)

    /// The cache with the settings of this tool, in its folder.
    static func openCache() -> DiskURLCache {
        var settings = DiskURLCache.Configuration(memoryCapacity: 0, diskCapacity: 1 << 30)
        // Of several runs at the same time one asks the server.
        settings.sharesFetches = true
        // After a failure of the network or the server, what was stored less than a week ago.
        settings.staleIfError = .days(7)
        return DiskURLCache(configuration: settings)
    }
}

struct Load: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Loads a URL, and writes its body to standard output or to a file.",
        discussion: """
            The exit status is 0, 22 for an answer with a status of 400 or more, 69 without an answer, and 130 after \
            Ctrl-C, which leaves nothing, or with --resume what has come.
            """
    )

    @Argument(help: "An http or https URL.", transform: webURL)
    var url: URL

    @Option(name: .shortAndLong, help: "Write the body to this file, once it is whole.", completion: .file())
    var output: String?

    @Option(
        help: "The same, and go on where a download of this file broke off, if the server's answer has a strong ETag.",
        completion: .file())
    var resume: String?

    @Flag(help: "Ask the server, whatever is stored.")
    var noCache = false

    @Flag(help: "Send no request: use what is stored, however old.")
    var offline = false

    @Option(help: "Use what is stored for so long after its lifetime: 90s, 10m, 1h or 7d.", transform: seconds)
    var maxStale: Int?

    @Flag(help: "Say on standard error where the answer came from, as a Cache-Status field (RFC 9211).")
    var cacheStatus = false

    func validate() throws {
        if output != nil, resume != nil { throw ValidationError("--output and --resume each name the file.") }
        if offline, noCache { throw ValidationError("--offline sends no request, and --no-cache sends one.") }
    }

    func run() async throws {
        let cache = Fetch.openCache()
        cache.isOffline = offline
        if let error = cache.openingError { complain("the cache works without its folder: \(error)") }

        var request = URLRequest(url: url)
        if noCache { request.cachePolicy = .reloadIgnoringLocalCacheData }
        if let maxStale { request.setValue("max-stale=\(maxStale)", forHTTPHeaderField: "Cache-Control") }
        let load = Task { [request] in try await deliver(request, from: cache) }
        // Cancelled, a load leaves no file and nothing stored, and only a download that may go on leaves its part.
        let interruption = onInterrupt { load.cancel() }
        defer { interruption.cancel() }
        let result = await load.result
        // Saves which responses were used last, and keeps to the capacity: this process ends.
        await cache.perform { $0.flush() }
        switch result {
        case .success(let status): if status >= 400 { throw ExitCode(22) }
        case .failure where load.isCancelled: throw ExitCode(130)
        case .failure(let error):
            let isUnknown = offline && (error as? URLError)?.code == .notConnectedToInternet
            complain("\(url.absoluteString): \(isUnknown ? "it is not stored" : error.localizedDescription)")
            throw ExitCode(69)
        }
    }

    /// - Returns: the status.
    private func deliver(_ request: URLRequest, from cache: DiskURLCache) async throws -> Int {
        let fallback: DiskURLCache.Options.Fallback? = offline ? .anyStored : nil
        if let file = resume ?? output {
            let (response, report) = try await cache.file(
                for: request, at: URL(fileURLWithPath: file), replacingFile: true, resuming: resume != nil,
                fallback: fallback)
            tell(response, report)
            return response.statusCode
        }
        let stream = try await cache.bytes(for: request, fallback: fallback)
        tell(stream.response, stream.report)
        for try await piece in stream { try FileHandle.standardOutput.write(contentsOf: piece) }
        return stream.response.statusCode
    }

    private func tell(_ response: HTTPURLResponse, _ report: DiskURLCache.Report) {
        if cacheStatus { complain("Cache-Status: \(report.cacheStatus)") }
        if response.statusCode >= 400 { complain("the server answered \(response.statusCode)") }
    }
}

// MARK: The cache's own commands

struct CacheCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache", abstract: "Looks into the cache.",
        subcommands: [List.self, Stats.self, Why.self, Clear.self])

    /// Nil if nothing has been stored yet. Reading takes no lock, so another `fetch` may run.
    static func inspector() throws -> DiskURLCache.Inspector? {
        do {
            return try DiskURLCache.Inspector(directory: DiskURLCache.defaultDirectory)
        } catch  where error.code == .notACache {
            return nil
        }
    }

    static func records() throws -> [DiskURLCache.Inspector.Record] {
        try inspector()?.records().filter { $0.problem == nil } ?? []
    }

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Lists what is stored, the last used first.")

        func run() throws {
            for record in try CacheCommands.records() {
                let isFresh = record.freshUntil.map { $0 > Date() } ?? false
                print(isFresh ? "fresh" : "stale", size(record.bytes), record.url ?? "", separator: "\t")
            }
        }
    }

    struct Stats: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Counts what is stored.")

        func run() throws {
            let records = try CacheCommands.records()
            let fresh = records.count { $0.freshUntil.map { $0 > Date() } ?? false }
            print("folder   ", DiskURLCache.defaultDirectory.path)
            print("responses", records.count, "of which fresh:", fresh)
            print("on disk  ", size(records.reduce(0) { $0 + $1.bytesOnDisk }))
        }
    }

    struct Why: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Explains what a load of the URL would do now, and why. Sends no request.")

        @Argument(help: "An http or https URL.", transform: webURL)
        var url: URL

        func run() async throws {
            // By the cache itself, since an inspector does not know the settings.
            print(Fetch.openCache().explanation(for: URLRequest(url: url)))
        }
    }

    struct Clear: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Removes what is stored.")

        @Option(help: "Only what this host sent.")
        var host: String?

        func run() throws {
            guard let inspector = try CacheCommands.inspector() else { return }
            let removed = try inspector.records().filter { record in
                host == nil || record.url.flatMap { URL(string: $0)?.host } == host
            }
            print("removed", inspector.remove(removed))
        }
    }
}

// MARK: Words and numbers

private func webURL(_ text: String) throws -> URL {
    guard let url = URL(string: text), ["http", "https"].contains(url.scheme?.lowercased()), url.host != nil else {
        throw ValidationError("\"\(text)\" is no http or https URL.")
    }
    return url
}

private func seconds(_ text: String) throws -> Int {
    let units: [Character: Int] = ["s": 1, "m": 60, "h": 3_600, "d": 86_400]
    guard let unit = text.last.flatMap({ units[$0] }), let count = Int(text.dropLast()), (0...100_000).contains(count)
    else { throw ValidationError("\"\(text)\" is no time: write 90s, 10m, 1h or 7d.") }
    return count * unit
}

private func size(_ bytes: Int) -> String {
    ByteCountFormatter.string(fromByteCount: Int64(bytes), countStyle: .file)
}

private func complain(_ text: String) {
    try? FileHandle.standardError.write(contentsOf: Data("fetch: \(text)\n".utf8))
}

/// Calls `action` at Ctrl-C, instead of ending the process at once.
private func onInterrupt(_ action: @escaping @Sendable () -> Void) -> any DispatchSourceSignal {
    signal(SIGINT, SIG_IGN)
    let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: .global())
    source.setEventHandler(handler: action)
    source.resume()
    return source
}
