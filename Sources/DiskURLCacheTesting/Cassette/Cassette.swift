import DiskURLCache
import DiskURLCacheAdapters
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

extension DiskURLCache {
    /// Answers of real servers, recorded once into a folder and replayed by tests without a network.
    ///
    /// ```swift no-check
    /// let records = ProcessInfo.processInfo.environment["RECORD"] != nil
    /// let cassette = try DiskURLCache.Cassette(at: folder, recordingWith: records ? .ephemeral : nil)
    /// let session = try cassette.makeSession()
    /// ```
    ///
    /// A request is recognised by its method, its URL and its body; a JSON body by its value. Equal requests get their
    /// answers in the order in which they were recorded, the last one again and again. Any other request fails with
    /// `URLError.resourceUnavailable`: its description names the nearest recorded request, and what differs.
    ///
    /// Credentials are not written: no header field of a request, no cookie, no user name or password in a URL, and no
    /// value under one of the names of `withholding`. Anything else in a body is written as it is. `Date` and `Age` are
    /// left out, so that an answer is as young at each replay as it was when it was recorded; one whose lifetime is in
    /// `Expires` alone is stale once that is over.
    ///
    /// Can be used from any thread.
    public final class Cassette: Transport, @unchecked Sendable {
        /// The names under which most services expect a secret.
        public static let secretNames: Set<String> = [
            "access_token", "api-key", "api_key", "apikey", "client_assertion", "client_secret", "code", "id_token",
            "key", "password", "refresh_token", "secret", "sig", "signature", "token", "x-amz-credential",
            "x-amz-security-token", "x-amz-signature",
        ]

        let folder: URL
        private let configuration: URLSessionConfiguration?
        private let secrets: Secrets
        // `@unchecked`: all below are read and written under `lock` only.
        private let lock = NSLock()
        /// By the names of their files, which are in the order in which they were recorded.
        private var exchanges: [(name: String, exchange: Exchange)]
        /// How many times each recorded request was replayed.
        private var replayed: [Asked: Int] = [:]
        /// What was recorded since this object was made. The first record of a request takes the place of older ones.
        private var recorded: Set<Asked> = []

        var count: Int { lock.withLock { exchanges.count } }

        /// - Parameters:
        ///   - folder: of the recorded answers, one JSON file for each, to be kept with the tests.
        ///   - configuration: of the session that sends requests to be recorded; nil to replay.
        ///   - names: of query items, items of a URL-encoded form and members of JSON objects whose value is a secret,
        ///     in lower case. A text under such a name is `withheld` in the file, and for who replays it, and a number
        ///     is 0; `null`, `true`, `false`, 0 and 1 stay. In JSON `key` and `code` are seldom secrets, so they are
        ///     kept there.
        /// - Throws: the error of reading a file, or of making the folder.
        public init(
            at folder: URL, recordingWith configuration: URLSessionConfiguration? = nil,
            withholding names: Set<String> = secretNames
        ) throws {
            self.folder = folder
            self.configuration = configuration
            secrets = Secrets(names: names)
            if configuration != nil {
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            }
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            exchanges = try names.filter { $0.hasSuffix(".json") }.sorted().map {
                let data = try Data(contentsOf: folder.appendingPathComponent($0))
                return ($0, try JSONDecoder().decode(Exchange.self, from: data))
            }
        }

        /// A session whose requests this cassette answers.
        /// - Parameters:
        ///   - cache: is between the session and the cassette.
        ///   - configuration: is copied.
        /// - Throws: as `makeSession(configuration:delegate:delegateQueue:through:variant:)`.
        public func makeSession(
            of cache: DiskURLCache = .forTesting(), configuration: URLSessionConfiguration = .ephemeral
        ) throws -> URLSession {
            try cache.makeSession(configuration: configuration, through: self)
        }

        public func send(_ request: Request, to receiver: Receiver) async throws {
            let asked = Asked(request, secrets)
            let given: Given
            if let configuration {
                let (response, body) = try await RecordedLoad.answer(to: request.urlRequest, configuration)
                let written = Given(response, body, secrets)
                try lock.withLock { try record(Exchange(asked: asked, given: written)) }
                // The program goes on with what it was given: it follows a signed URL, and sends a token.
                given = Given(response, body, nil)
            } else {
                given = try lock.withLock { try replay(asked) }
            }
            receiver.receive(Head(status: given.status, fields: given.headFields))
            await receiver.receive(given.body?.data ?? Data())
        }

        private func replay(_ asked: Asked) throws -> Given {
            let answers = exchanges.filter { $0.exchange.asked == asked }
            guard !answers.isEmpty else { throw unknown(asked) }
            let number = replayed[asked, default: 0]
            replayed[asked] = number + 1
            return answers[min(number, answers.count - 1)].exchange.given
        }

        private func record(_ exchange: Exchange) throws {
            if recorded.insert(exchange.asked).inserted {
                for old in exchanges where old.exchange.asked == exchange.asked {
                    try FileManager.default.removeItem(at: folder.appendingPathComponent(old.name))
                }
                exchanges.removeAll { $0.exchange.asked == exchange.asked }
            }
            let number = (exchanges.last.flatMap { Int($0.name.prefix { $0 != " " }) } ?? 0) + 1
            let digits = String(number)
            let name =
                String(repeating: "0", count: max(0, 4 - digits.count)) + "\(digits) \(exchange.asked.fileName).json"
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
            try encoder.encode(exchange).write(to: folder.appendingPathComponent(name), options: .atomic)
            exchanges.append((name, exchange))
        }

        private func unknown(_ asked: Asked) -> URLError {
            var text = "\(asked.method) \(asked.url) is not recorded in \(folder.path)."
            let nearest = exchanges.max {
                $0.exchange.asked.likeness(to: asked) < $1.exchange.asked.likeness(to: asked)
            }
            if let (name, exchange) = nearest {
                text +=
                    " The nearest is \"\(name)\": " + exchange.asked.differences(of: asked).joined(separator: "; ")
                    + "."
            } else {
                text += " Nothing is: record it first."
            }
            return URLError(.resourceUnavailable, userInfo: [NSLocalizedDescriptionKey: text])
        }
    }
}

/// The load of a request to be recorded. It follows no redirect, since the cache asks for the next URL itself.
private final class RecordedLoad: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    // `@unchecked`: set before the task is resumed, and then used on the session's delegate queue, which is serial.
    private var continuation: CheckedContinuation<(HTTPURLResponse, Data), any Error>?
    private var body = Data()

    static func answer(
        to request: URLRequest, _ configuration: URLSessionConfiguration
    ) async throws -> (HTTPURLResponse, Data) {
        let load = RecordedLoad()
        let session = URLSession(configuration: configuration, delegate: load, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        var request = request
        request.cachePolicy = .reloadIgnoringLocalCacheData
        let task = session.dataTask(with: request)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation {
                load.continuation = $0
                task.resume()
            }
        } onCancel: {
            task.cancel()
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) { body += data }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let response = task.response as? HTTPURLResponse, error == nil {
            continuation?.resume(returning: (response, body))
        } else {
            continuation?.resume(throwing: error ?? URLError(.badServerResponse))
        }
        continuation = nil
    }
}
