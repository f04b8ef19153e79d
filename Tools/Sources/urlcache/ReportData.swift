import Foundation

/// The data of the page. To keep a page of 10,000 entries below 2 MB, entries are stored by column, and repeated texts
/// in tables.
struct ReportData: Encodable {
    /// Each column has one number or text for each entry. Times are in seconds, relative to the moment when the page
    /// was written.
    struct Columns: Encodable {
        var host: [Int] = []
        var folder: [Int] = []
        var leaf: [String] = []
        var type: [Int] = []
        var vary: [Int] = []
        /// -1: none.
        var tags: [Int] = []
        /// 0: not HTTP.
        var status: [Int] = []
        var bytes: [Int] = []
        var disk: [Int] = []
        var age: [Int?] = []
        var stored: [Int?] = []
        var used: [Int?] = []
        /// Seconds of freshness left, negative if stale; nil without a lifetime.
        var left: [Int?] = []
        var pinned: [Int] = []
        /// The number of the variant among those of its URL, counted from 1, and how many there are.
        var variant: [Int] = []
        var variants: [Int] = []
    }

    /// A list without repetitions, and the position of each text in it.
    private struct Table {
        var texts: [String] = []
        private var places: [String: Int] = [:]

        mutating func place(_ text: String) -> Int {
            if let place = places[text] { return place }
            places[text] = texts.count
            texts.append(text)
            return texts.count - 1
        }
    }

    let directory: String
    /// The file with the rules by which responses are fresh; nil if their own fields alone say it.
    let rules: String?
    let writtenAt: Int
    let summary: Stats.Summary
    /// The number of characters of a path that are shown; nil if paths are not cut.
    let cut: Int?
    let hosts: [String]
    let folders: [String]
    let types: [String]
    let vary: [String]
    let tags: [String]
    let entries: Columns
    let log: LogSummary?

    init(
        _ records: [RecordFacts], summary: Stats.Summary, log: LogSummary?, directory: String, rules: String?,
        now: Date, longestPath: Int
    ) {
        self.directory = directory
        self.rules = rules
        writtenAt = Int(now.timeIntervalSince1970)
        // The page has separate tables for these.
        self.summary = summary.withoutGroups
        self.log = log
        var (hosts, folders, types, vary, tags) = (Table(), Table(), Table(), Table(), Table())
        var columns = Columns()
        let countByURL = Dictionary(records.map { ($0.url ?? $0.file, 1) }, uniquingKeysWith: +)
        var seenByURL: [String: Int] = [:]
        var isCut = false
        for record in records {
            var (host, folder, leaf) = Self.parts(of: record)
            if folder.count + leaf.count > longestPath {
                isCut = true
                if folder.count > longestPath { folder = folder.prefix(longestPath) + "…" }
                let room = max(8, longestPath - folder.count)
                if leaf.count > room { leaf = leaf.prefix(room) + "…" }
            }
            columns.host.append(hosts.place(host))
            columns.folder.append(folders.place(folder))
            columns.leaf.append(leaf)
            columns.type.append(types.place(record.contentType ?? "unknown"))
            columns.vary.append(vary.place(record.vary.joined(separator: ", ")))
            columns.tags.append(record.tags.isEmpty ? -1 : tags.place(record.tags.joined(separator: ", ")))
            columns.status.append(record.status ?? 0)
            columns.bytes.append(record.bytes)
            columns.disk.append(record.allocated)
            columns.age.append(record.age.map { Self.seconds(TimeInterval($0)) })
            columns.stored.append(record.storedAt.map { Self.seconds(now.timeIntervalSince($0)) })
            columns.used.append(record.lastUsed.map { Self.seconds(max(0, now.timeIntervalSince($0))) })
            columns.left.append(record.freshUntil.map { Self.seconds($0.timeIntervalSince(now)) })
            columns.pinned.append(record.isPinned ? 1 : 0)
            let name = record.url ?? record.file
            seenByURL[name, default: 0] += 1
            columns.variant.append(seenByURL[name] ?? 1)
            columns.variants.append(countByURL[name] ?? 1)
        }
        entries = columns
        cut = isCut ? longestPath : nil
        self.hosts = hosts.texts
        self.folders = folders.texts
        self.types = types.texts
        self.vary = vary.texts
        self.tags = tags.texts
    }

    private static func parts(of record: RecordFacts) -> (host: String, folder: String, leaf: String) {
        let host = host(of: record.url)
        guard let text = record.url else { return (host, "", "\(record.file.prefix(16))…") }
        guard let separator = text.range(of: "://") else { return (host, "", text) }
        let path = text[separator.upperBound...].drop { $0 != "/" && $0 != "?" }
        let folderEnd = path.prefix { $0 != "?" }.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex
        return (host, String(path[..<folderEnd]), String(path[folderEnd...]))
    }

    /// The host, with scheme and port. `https://` is left out, since a reader expects it.
    static func host(of url: String?) -> String {
        guard let url else { return "(URL not kept)" }
        guard let separator = url.range(of: "://") else { return "(no host)" }
        let scheme = url[..<separator.lowerBound].lowercased()
        return (scheme == "https" ? "" : scheme + "://")
            + url[separator.upperBound...].prefix { $0 != "/" && $0 != "?" }
    }

    /// In whole seconds, away from 0, so that what is fresh has at least one left; infinite times are cut.
    private static func seconds(_ interval: TimeInterval) -> Int {
        Int(min(max(interval, -1e11), 1e11).rounded(.awayFromZero))
    }
}

extension Stats.Summary {
    fileprivate var withoutGroups: Self {
        var summary = self
        summary.types = []
        summary.hosts = []
        summary.statuses = []
        return summary
    }
}
