import ArgumentParser
import DiskURLCache
import DiskURLCacheTools
import Foundation

struct Why: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract:
            "Explains, clause by clause, the cache's decision about a URL: key, variants, freshness, and changes that help.",
        usage:
            "urlcache why [<directory>] <url> [--load] [--method <method>] [--body <text>] [--header <header> ...] [--variant <variant>] [--shared] [--rules <file>] [--json]",
        discussion: """
            With a directory the command reads the stored responses, changes nothing and sends no request. Without a \
            directory, or with --load, it sends the request and stores nothing. It knows the standard settings, those of \
            --shared, and the rules of --rules: in a program use DiskURLCache.explanation(for:variant:response:sentAt:).

            A file of rules is a JSON list. Each rule has one of "url" (a pattern), "path", "host" and "contentType", \
            or none for all; and of "storage" (memoryAndDisk, memoryOnly, never), "lifetime" (always so many seconds), \
            "lifetimeWhenMissing", "staleWhileRevalidate", "staleIfError", "fallback" (anyStored), \
            "minimumInterval", "errorLifetime", "invalidatesURL", "minimumDiskLifetime", "tags" and "isPinned" \
            what it sets: [{"host": "example.com", "lifetimeWhenMissing": 3600}].
            """)

    @Argument(help: "The cache's directory, if any, and an http or https URL.")
    var arguments: [String]

    @Flag(help: "Send the request too, and explain the decision about the response.")
    var load = false

    @Option(help: "The request's method.")
    var method = "GET"

    @Option(help: "The request's body, as text; with a method other than GET and HEAD it is part of the key.")
    var body: String?

    @Flag(help: "As a shared cache, for many users (Configuration.isShared).")
    var shared = false

    @Option(help: "A file with rules, in JSON.", completion: .file(extensions: ["json"]))
    var rules: String?

    @Option(help: "A field of the request, such as 'Accept-Language: de'. May be given several times.")
    var header: [String] = []

    @Option(
        help: """
            The variant of the client that stored it. Without one, what URLSession stored is looked for, and then what a \
            CachingHTTPClient did.
            """)
    var variant: String?

    @Flag(
        help:
            "Print JSON: the paragraphs of the explanation, the origin's response if one was asked for, and the last loads."
    )
    var json = false

    /// What the command prints.
    struct Facts: Encodable {
        struct Paragraph: Encodable {
            let title: String
            let lines: [String]
        }

        struct Response: Encodable {
            let status: Int
            let fields: [String: String]
        }

        struct Load: Encodable {
            let at: Date
            let outcome: String
            let reasons: [String]
            /// What could change that the answer was not stored.
            let advice: String?
        }

        let method: String
        let url: String
        var response: Response?
        var explanation: [Paragraph] = []
        /// What the folder and its log say about a URL of which nothing is stored.
        var hints: [String] = []
        var loads: [Load] = []

        /// Whether a paragraph has the sentence.
        func says(_ sentence: String) -> Bool {
            explanation.contains { $0.lines.contains { $0.contains(sentence) } }
        }
    }

    func validate() throws {
        guard (1...2).contains(arguments.count) else {
            throw ValidationError("Give a URL, and a directory before it if any.")
        }
        for field in header where (field.firstIndex(of: ":") ?? field.startIndex) == field.startIndex {
            throw ValidationError("\"\(field)\" is no header field: write 'Name: value'.")
        }
    }

    func run() async throws {
        let isWeb = { (text: String) in
            text.lowercased().hasPrefix("http://") || text.lowercased().hasPrefix("https://")
        }
        // The arguments may be in either order: one of them is a URL.
        let text = arguments.last(where: isWeb) ?? arguments[arguments.count - 1]
        let directory = arguments.count == 2 ? arguments.first { $0 != text } : nil
        var request = URLRequest(url: try webURL(text))
        request.httpMethod = method
        request.httpBody = body.map { Data($0.utf8) }
        for field in header {
            let parts = field.split(separator: ":", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
            request.addValue(parts.count > 1 ? parts[1] : "", forHTTPHeaderField: parts[0])
        }
        let folder = directory.map { URL(fileURLWithPath: $0, isDirectory: true) }
        let inspector = try folder.map { try DiskURLCache.Inspector(directory: $0) }
        // An inspector by itself knows the standard settings only.
        let cache = try hasSettings || inspector == nil ? settled() : nil
        func explanation(_ response: HTTPURLResponse? = nil, sentAt: Date? = nil) -> DiskURLCache.Explanation? {
            guard let inspector else {
                return cache?.explanation(for: request, variant: variant, response: response, sentAt: sentAt)
            }
            guard let cache else {
                return inspector.explanation(for: request, variant: variant, response: response, sentAt: sentAt)
            }
            return inspector.explanation(
                for: request, by: cache, variant: variant, response: response, sentAt: sentAt)
        }
        // A request that may change something at the origin is sent only with --load.
        let isSafe = ["GET", "HEAD", "OPTIONS"].contains(method.uppercased())
        let isSent = load || (inspector == nil && isSafe)
        var facts = Facts(method: method, url: withoutCredentials(text))
        if isSent {
            let sentAt = Date()
            let response = try await head(of: request)
            facts.response = Facts.Response(status: response.statusCode, fields: Self.fields(of: response))
            facts.explanation = Self.paragraphs(explanation(response, sentAt: sentAt))
        } else {
            facts.explanation = Self.paragraphs(explanation())
        }
        if let folder, let inspector, let url = request.url {
            let log = DiskURLCache.EventLog.entries(in: ProgramLog.file(in: folder))
            facts.loads = Self.lastLoads(of: url, in: log)
            if facts.says("Nothing is stored under this key.") {
                facts.hints = Self.hints(about: url, in: log, Self.neighbours(of: url, in: inspector))
            }
        }
        if json { return try printJSON(facts) }
        output(facts)
        if !isSent, facts.says("Loads from the network.") {
            show("\nAdd --load to see the origin's response, and whether it would be stored.")
        }
    }

    private func output(_ facts: Facts) {
        show("\(method) \(facts.url)")
        if let response = facts.response {
            show("\n\(colour("The origin's response: status \(response.status)", .title))")
            for (name, value) in response.fields.sorted(by: { $0.key < $1.key }) { show("  \(name): \(value)") }
        }
        for paragraph in facts.explanation {
            show("\n\(colour("\(paragraph.title)", .title))")
            for line in paragraph.lines { show("\(line)") }
        }
        if !facts.hints.isEmpty {
            show("\n\(colour("What the folder says about it", .title))")
            for hint in facts.hints { show("  \(hint)") }
        }
        guard !facts.loads.isEmpty else { return }
        show("\n\(colour("Its last loads, from the event log", .title))")
        for load in facts.loads {
            let reasons = load.reasons.joined(separator: "; ")
            show("  \(load.at)  \(load.outcome)\(reasons.isEmpty ? "" : "  [\(reasons)]")")
        }
        if let advice = facts.loads.last?.advice { show("  \(advice)") }
    }

    // MARK: Nothing is stored

    /// The two most common causes that the decision about one request does not show: a session that does not use the
    /// cache, and a part of the URL that is new each time.
    private static func hints(about url: URL, in log: [LogEntry], _ neighbours: Neighbours?) -> [String] {
        var hints: [String] = []
        let loaded = log.compactMap { entry in if case .load(let load) = entry.event { load.url } else { nil } }
        if !loaded.isEmpty, !loaded.contains(url) {
            hints.append(
                "The event log has no load of this URL: perhaps a session loads it that is not attached to this cache.")
        }
        if let neighbours {
            let names = neighbours.items.sorted()
            let are =
                neighbours.count == 1
                ? "One response is stored whose URL differs"
                : "\(neighbours.count) responses are stored whose URLs differ"
            let (items, they) = names.count == 1 ? ("item", "it does") : ("items", "they do")
            let quoted = names.map { "\"\($0)\"" }.joined(separator: ", ")
            hints.append("\(are) from this one only in the query \(items) \(names.joined(separator: ", ")).")
            hints.append(
                "If \(they) not choose the content (a signature, a tracker), "
                    + "keyPolicy = .standard.droppingQueryItems(\(quoted)) makes one response of them.")
        }
        return hints
    }

    /// Stored responses of the same path, and the names of the query items in which their URLs differ from this one.
    private typealias Neighbours = (items: Set<String>, count: Int)

    /// The responses whose URLs differ in the fewest query items; nil if there are none, or if they differ in more than
    /// a signature has.
    private static func neighbours(of url: URL, in inspector: DiskURLCache.Inspector) -> Neighbours? {
        guard let own = URLComponents(url: url, resolvingAgainstBaseURL: true), own.query != nil else { return nil }
        var counts: [Set<String>: Int] = [:]
        for record in (try? inspector.records()) ?? [] {
            guard let other = record.url.flatMap({ URLComponents(string: $0) }) else { continue }
            let isNear =
                (own.scheme, own.host, own.port, own.path) == (other.scheme, other.host, other.port, other.path)
            guard isNear else { continue }
            counts[differences(own.queryItems ?? [], other.queryItems ?? []), default: 0] += 1
        }
        let most = 6
        return counts.filter { (1...most).contains($0.key.count) }
            .min { ($0.key.count, $1.value) < ($1.key.count, $0.value) }.map { ($0.key, $0.value) }
    }

    /// The names of the items that are not the same in both.
    private static func differences(_ left: [URLQueryItem], _ right: [URLQueryItem]) -> Set<String> {
        func values(_ items: [URLQueryItem]) -> [String: [String?]] {
            Dictionary(grouping: items, by: \.name).mapValues { $0.map(\.value) }
        }
        let (left, right) = (values(left), values(right))
        return Set(left.keys).union(right.keys).filter { left[$0] != right[$0] }
    }

    private var hasSettings: Bool { shared || rules != nil || body != nil }

    /// A cache with the settings of the arguments. It opens no folder and is given nothing to store, but it says how
    /// large a body may be, so its memory is as large as the disk of a cache by default.
    private func settled() throws -> DiskURLCache {
        let usual = DiskURLCache.Configuration()
        var settings = DiskURLCache.Configuration(memoryCapacity: usual.diskCapacity, diskCapacity: 0)
        settings.isShared = shared
        if body != nil { settings.keyPolicy = .standard.includingBody(ofMethods: method) }
        if let rules { settings.rules = try RulesFile.read(rules) }
        return try RulesFile.cache(settings)
    }

    /// The fields that concern a cache.
    private static func fields(of response: HTTPURLResponse) -> [String: String] {
        let names = ["cache-control", "expires", "date", "age", "last-modified", "etag", "vary", "pragma", "location"]
        var fields: [String: String] = [:]
        for (name, value) in response.allHeaderFields {
            let name = "\(name)"
            if names.contains(name.lowercased()) { fields[name] = "\(value)" }
            // It decides in a shared cache; its value is a secret.
            if name.lowercased() == "set-cookie" { fields[name] = "…" }
        }
        return fields
    }

    /// The paragraphs of the text, each with its first line as a title.
    private static func paragraphs(_ explanation: DiskURLCache.Explanation?) -> [Facts.Paragraph] {
        let lines = explanation?.description.split(separator: "\n", omittingEmptySubsequences: false) ?? []
        return lines.split(whereSeparator: \.isEmpty).map { lines in
            Facts.Paragraph(title: String(lines.first ?? ""), lines: lines.dropFirst().map(String.init))
        }
    }

    /// The last loads of the URL, if the program keeps an event log.
    private static func lastLoads(of url: URL, in log: [LogEntry]) -> [Facts.Load] {
        log.compactMap { entry -> Facts.Load? in
            guard case .load(let load) = entry.event, load.url == url else { return nil }
            let (outcome, why) = load.inWords
            let reasons = [why, load.notStoredReason.map { "not stored: \($0)" }].compactMap { $0 }
            return Facts.Load(at: entry.date, outcome: outcome, reasons: reasons, advice: load.notStoredReason?.advice)
        }.suffix(3)
    }

    /// One exchange with the origin: redirects are not followed, nothing is stored.
    private func head(of request: URLRequest) async throws -> HTTPURLResponse {
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.timeoutIntervalForRequest = 20
        let listener = Listener()
        let session = URLSession(configuration: configuration, delegate: listener, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        do {
            return try await withCheckedThrowingContinuation { continuation in
                listener.begin(continuation)
                session.dataTask(with: request).resume()
            }
        } catch {
            throw Problem("The load failed: \(words(for: error))")
        }
    }
}

/// Ends a load at its head: the body does not matter here.
private final class Listener: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    // @unchecked: the continuation is set before the task begins, and then touched on the session's serial queue only.
    private var continuation: CheckedContinuation<HTTPURLResponse, any Error>?

    func begin(_ continuation: CheckedContinuation<HTTPURLResponse, any Error>) {
        self.continuation = continuation
    }

    private func end(_ result: Result<HTTPURLResponse, any Error>) {
        continuation?.resume(with: result)
        continuation = nil
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        end(.success(response))
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        if let response = response as? HTTPURLResponse { end(.success(response)) }
        completionHandler(.cancel)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let response = task.response as? HTTPURLResponse { return end(.success(response)) }
        end(.failure(error ?? URLError(.badServerResponse)))
    }
}
