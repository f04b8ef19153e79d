import ArgumentParser
import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

struct Trim: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Removes the least recently used entries until a cache fits; pinned ones last.")

    @OptionGroup var cache: CacheDirectory

    @Option(help: "Bytes on disk, such as 50MB.")
    var to: Size

    func run() throws {
        let result = try cache.open().trim(toBytes: to.bytes, progress: Progress("Removing:").show)
        print("Removed \(result.removed) entries; the directory takes \(byteCount(result.bytes)).")
    }
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

    @Flag(help: "Only say what would be removed.")
    var dryRun = false

    func validate() throws {
        if filter.isEmpty == !(all || damaged) {
            throw ValidationError("Give a filter such as --host, or --all, or --damaged.")
        }
    }

    func run() throws {
        let inspector = try cache.open()
        let records = try inspector.records(
            damaged ? .verified : .heads, progress: Progress("Reading records:").show
        ).filter { record in
            damaged ? record.state == .damaged : record.state == .intact && (all || filter.matches(record))
        }
        if dryRun {
            for record in records { print(printable(record.url ?? record.fileName)) }
            return print("\(records.count) entries would be removed.")
        }
        let removed = inspector.remove(records, progress: Progress("Removing:").show)
        print("Removed \(removed) entries.")
        if removed < records.count {
            throw Problem("\(records.count - removed) could not be removed, or were replaced meanwhile.")
        }
    }
}

struct RebuildIndex: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Makes the index anew from the records; when each entry was last used is lost.",
        discussion: "Not needed in everyday use: a cache does this by itself when its index is missing or damaged.")

    @OptionGroup var cache: CacheDirectory

    func run() throws {
        print("The new index holds \(try cache.open().rebuildIndex()) records.")
    }
}

struct Fill: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Loads URLs into a cache, for a program to ship with (Configuration.fallbackDirectories).",
        discussion: "URLs are read from standard input, one on each line, when none are given.")

    @OptionGroup var cache: CacheDirectory

    @Argument(help: "http and https URLs.")
    var urls: [String] = []

    @Option(help: "Requests at a time.")
    var concurrency = 4

    func run() async throws {
        var lines = urls
        if lines.isEmpty { while let line = readLine() { lines.append(line) } }
        let requests = try lines.filter { !$0.isEmpty }.map { line in
            guard let url = URL(string: line), ["http", "https"].contains(url.scheme?.lowercased()) else {
                throw Problem("\"\(printable(line))\" is not an http or https URL.")
            }
            return URLRequest(url: url)
        }
        guard !requests.isEmpty else { throw Problem("There is nothing to load.") }
        let target = DiskURLCache(memoryCapacity: 0, diskCapacity: .max, directory: cache.url)
        let failed = await target.prefetch(requests, maximumConcurrency: concurrency)
        target.flush()
        if let error = target.openingError { throw Problem(error.description) }
        for (request, error) in failed {
            print("failed  \(printable(request.url?.absoluteString ?? "")): \(error.localizedDescription)")
        }
        let refused = requests.filter { request in
            !target.contains(request) && !failed.contains { $0.request == request }
        }
        for request in refused {
            print("not stored, as its response asks  \(printable(request.url?.absoluteString ?? ""))")
        }
        print("\(requests.count - failed.count - refused.count) of \(requests.count) are in \(cache.directory).")
        if !failed.isEmpty { throw ExitCode(1) }
    }
}
