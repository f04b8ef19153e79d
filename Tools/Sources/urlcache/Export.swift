import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

struct Export: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes entries as a HAR file (HTTP Archive 1.2) for a browser's developer tools.",
        discussion: """
            A cache does not keep requests: the archive has their method and URL only. The exit status is 1 if the body of an entry cannot \
            be read: it is damaged, or was removed meanwhile. The archive has such an entry without its body.
            """)

    @OptionGroup var cache: CacheDirectory
    @OptionGroup var filter: Filter

    @Option(help: "The file to write.")
    var har: String

    @Flag(help: "Leave out bodies.")
    var headersOnly = false

    @Flag(help: "Print JSON about the file.")
    var json = false

    func run() throws {
        let inspector = try cache.open()
        let records = try inspector.records(progress: Progress("Reading records:").show).filter {
            $0.problem == nil && $0.status != nil && filter.matches($0)
        }
        let progress = Progress("Writing:")
        var unreadable: [String] = []
        let entries = records.enumerated().map { index, record in
            progress.show(index, records.count)
            let body = headersOnly ? nil : inspector.body(of: record)
            if !headersOnly, body == nil { unreadable.append(record.fileName) }
            return Archive.Entry(record, body: body)
        }
        progress.show(records.count, records.count)
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let archive = Data(escapingControls(try encoder.encode(Archive(entries))).utf8)
        try write(archive, toFile: har)
        try tell(of: FileFacts(file: har, entries: entries.count, bytes: archive.count), json: json)
        if let first = unreadable.first {
            throw Problem("\(unreadable.count) bodies cannot be read, such as that of \(first): see urlcache verify.")
        }
    }
}

/// A file that a command has written.
struct FileFacts: Encodable {
    let file: String
    let entries: Int
    let bytes: Int
}

/// Says what was written; nothing if that was standard output, which has the file and no more.
func tell(of facts: FileFacts, json: Bool) throws {
    guard facts.file != "/dev/stdout" else { return }
    if json { return try printJSON(facts) }
    show("\(facts.entries) entries in \(facts.file), \(byteCount(facts.bytes)).")
}

/// HTTP Archive 1.2, with the members that a cache knows.
struct Archive: Encodable {
    struct Log: Encodable {
        let version = "1.2"
        let creator = ["name": "urlcache", "version": "1"]
        let entries: [Entry]
    }

    struct NameValue: Encodable {
        let name: String
        let value: String
    }

    struct Request: Encodable {
        let method: String
        let url: String
        let httpVersion = "HTTP/1.1"
        let cookies: [NameValue] = []
        let headers: [NameValue] = []
        let queryString: [NameValue]
        let headersSize = -1
        let bodySize = -1
    }

    struct Content: Encodable {
        let size: Int
        let mimeType: String
        let text: String?
        let encoding: String?
    }

    struct Response: Encodable {
        let status: Int
        let statusText = ""
        let httpVersion = "HTTP/1.1"
        let cookies: [NameValue] = []
        let headers: [NameValue]
        let content: Content
        let redirectURL: String
        let headersSize = -1
        let bodySize: Int
    }

    struct Entry: Encodable {
        let startedDateTime: String
        let time = 0
        let request: Request
        let response: Response
        let cache: [String: String] = [:]
        let timings = ["send": 0, "wait": 0, "receive": 0]
    }

    let log: Log

    init(_ entries: [Entry]) {
        log = Log(entries: entries)
    }
}

extension Archive.Entry {
    init(_ record: DiskURLCache.Inspector.Record, body: Data?) {
        let url = record.url ?? "unknown:\(record.fileName)"
        let items = URLComponents(string: url)?.queryItems ?? []
        let type = record.field("content-type")
        let text = body.flatMap { ArchiveText.text($0, type: type) }
        startedDateTime = ISO8601DateFormatter().string(from: record.storedAt ?? Date(timeIntervalSince1970: 0))
        request = Archive.Request(
            method: record.method ?? "GET", url: url,
            queryString: items.map { Archive.NameValue(name: $0.name, value: $0.value ?? "") })
        response = Archive.Response(
            status: record.status ?? 0,
            headers: record.fields.map { Archive.NameValue(name: $0.name, value: $0.value) },
            content: Archive.Content(
                size: record.bytes, mimeType: type ?? "application/octet-stream",
                text: text ?? body?.base64EncodedString(), encoding: text == nil && body != nil ? "base64" : nil),
            redirectURL: record.field("location") ?? "",
            bodySize: record.bytes)
    }
}

/// How an archive has a body: as a text, whose bytes the charset of its type gives again.
enum ArchiveText {
    private static let encodings: [String: String.Encoding] = [
        "utf-8": .utf8, "utf8": .utf8, "us-ascii": .ascii, "iso-8859-1": .isoLatin1, "windows-1252": .windowsCP1252,
        "utf-16": .utf16,
    ]

    /// UTF-8 if the type names none; nil if it is none of those above.
    private static func encoding(of type: String?) -> String.Encoding? {
        let charset = type?.split(separator: ";").dropFirst().map {
            $0.trimmingCharacters(in: .whitespaces).lowercased()
        }
        .first { $0.hasPrefix("charset=") }?.dropFirst(8).trimmingCharacters(in: ["\""])
        return charset.map { encodings[$0] } ?? .utf8
    }

    /// Nil if it is no text of that charset, or one that has other bytes when it is written again.
    static func text(_ body: Data, type: String?) -> String? {
        let text = encoding(of: type).flatMap { String(data: body, encoding: $0) }
        return text.flatMap { self.body($0, type: type) == body ? $0 : nil }
    }

    static func body(_ text: String, type: String?) -> Data? {
        guard let encoding = encoding(of: type) else { return nil }
        // Browsers read ISO 8859-1 as Windows-1252.
        return text.data(using: encoding) ?? (encoding == .isoLatin1 ? text.data(using: .windowsCP1252) : nil)
    }
}
