import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

struct Import: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Stores the responses of a HAR file, such as a browser's developer tools save, in a cache.",
        discussion: """
            Responses to GET are stored as if they had just arrived: how old they are is said by their Date and Age. Not stored are \
            responses without their body in the file, texts in a charset that is not known, and those that a cache may not store; of several \
            responses of a URL the last one counts. Values of Authorization and cookies are \
            written only as salted digests, if at all. The exit status is 1 if nothing is stored.
            """)

    @Argument(help: "The HAR file.", completion: .file(extensions: ["har"]))
    var har: String

    @OptionGroup var cache: NamedDirectory

    @Flag(help: "Print JSON.")
    var json = false

    struct Facts: Encodable {
        let directory: String
        let entries: Int
        let stored: Int
        /// The URLs of responses that are not stored.
        let notStored: [String]
    }

    /// The part of an archive that is read.
    private struct File: Decodable {
        struct NameValue: Decodable {
            let name: String
            let value: String
        }

        struct Request: Decodable {
            let method: String
            let url: String
            let headers: [NameValue]
        }

        struct Content: Decodable {
            let text: String?
            let encoding: String?
        }

        struct Response: Decodable {
            let status: Int
            let headers: [NameValue]
            let content: Content
        }

        struct Entry: Decodable {
            let request: Request
            let response: Response
        }

        struct Log: Decodable { let entries: [Entry] }

        let log: Log
    }

    func run() throws {
        guard let data = FileManager.default.contents(atPath: har) else { throw Problem("\(har) cannot be read.") }
        guard let entries = try? JSONDecoder().decode(File.self, from: data).log.entries else {
            throw Problem("\(har) is no HTTP Archive.")
        }
        try cache.checkPlace()
        let target = DiskURLCache(memoryCapacity: 0, diskCapacity: .max, directory: cache.url)
        if let error = target.openingError { throw Problem("\(error)") }
        let requests = entries.map { entry -> URLRequest? in
            guard let (request, response) = Self.exchange(entry) else { return nil }
            target.storeCachedResponse(response, for: request)
            return request
        }
        target.flush()
        // Asked at the end: an entry may have been replaced by a later one that is not stored.
        let notStored = zip(entries, requests).filter { _, request in
            request.map { !target.contains($0) } ?? true
        }.map { withoutCredentials($0.0.request.url) }
        let stored = entries.count - notStored.count
        if json {
            try printJSON(
                Facts(directory: cache.directory, entries: entries.count, stored: stored, notStored: notStored))
        } else {
            for url in notStored { show("\(colour("not stored", .warning))  \(url)") }
            show("\(stored) of \(entries.count) are in \(cache.directory).")
        }
        if stored == 0 { throw ExitCode(1) }
    }

    /// Fields about how the body was sent: an archive has it decoded, and its length may differ.
    private static let ofSending: Set<String> = ["content-encoding", "content-length", "transfer-encoding"]

    /// The request and the response as Foundation has them; nil for a request that is no GET, and for a response
    /// without its body, or whose text cannot be written in its charset.
    private static func exchange(_ entry: File.Entry) -> (URLRequest, CachedURLResponse)? {
        guard entry.request.method == "GET", let url = try? webURL(entry.request.url) else { return nil }
        var request = URLRequest(url: url)
        // Names of HTTP/2, such as ":path", are no fields.
        for field in entry.request.headers where !field.name.hasPrefix(":") {
            request.addValue(field.value, forHTTPHeaderField: field.name)
        }
        var fields: [String: String] = [:]
        for field in entry.response.headers {
            let name = field.name.lowercased()
            guard !name.hasPrefix(":"), !ofSending.contains(name) else { continue }
            fields[name] = fields[name].map { "\($0), \(field.value)" } ?? field.value
        }
        guard let body = body(entry.response.content, type: fields["content-type"]) else { return nil }
        let response = HTTPURLResponse(
            url: url, statusCode: entry.response.status, httpVersion: "HTTP/1.1", headerFields: fields)
        return response.map { (request, CachedURLResponse(response: $0, data: body)) }
    }

    /// Nil also for a text of which the charset is not known, or does not have all characters.
    private static func body(_ content: File.Content, type: String?) -> Data? {
        guard let text = content.text else { return nil }
        return content.encoding == "base64" ? Data(base64Encoded: text) : ArchiveText.body(text, type: type)
    }
}
