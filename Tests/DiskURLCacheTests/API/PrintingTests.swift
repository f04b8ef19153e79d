import DiskURLCacheAdapters
import DiskURLCacheTesting
import DiskURLCacheTools
import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a program prints has no credentials, no body and no password of a URL: a line of a log, `dump`, the message of
/// a failed test.
@Suite(.fewAtATime) struct PrintingTests {
    static let secret = "TOPSECRET"
    private let scratch: ScratchDirectory

    init() throws { scratch = try ScratchDirectory() }

    /// Every way in which Swift turns a value into text.
    private func texts<Value>(of value: Value) -> [String] {
        var (printed, debugged, dumped) = ("", "", "")
        print(value, to: &printed)
        debugPrint(value, to: &debugged)
        dump(value, to: &dumped)
        var inContainers = ""
        dump(["key": [value]], to: &inContainers)
        return [
            printed, debugged, dumped, inContainers, "\(value)", String(reflecting: value), "\([value])",
            "\(Value?.some(value) as Any)",
        ]
    }

    private func shows(_ text: String) -> Bool {
        // `dump` prints the bytes of data as numbers, one on each line.
        let numbers = text.split { !$0.isNumber }.joined(separator: " ")
        let bytes = Self.secret.utf8.map { "\($0)" }.joined(separator: " ")
        return text.contains(Self.secret) || numbers.contains(bytes)
    }

    /// A cassette with a secret in an answer.
    private func recorded(from origin: DiskURLCache.StubOrigin) async throws -> DiskURLCache.Cassette {
        let folder = scratch.url.appendingPathComponent("cassette")
        let cassette = try DiskURLCache.Cassette(at: folder, recordingWith: origin.configuration)
        _ = try await cassette.makeSession().data(from: origin.url)
        return cassette
    }

    @Test func noPublicTypePrintsCredentialsBodiesOrPasswords() async throws {
        let samples = try await samples()
        for (name, value) in samples {
            for text in texts(of: value) {
                #expect(!shows(text), "\(name) prints a secret")
                #expect(!text.isEmpty)
            }
        }
        // A type that is added needs a sample.
        #expect(try Self.publicTypes().subtracting(samples.keys) == [])
    }

    @Test func aRequestPrintsTheLengthOfItsBody() {
        var request = Responses.request("/a")
        request.httpMethod = "POST"
        request.httpBody = Data("abc".utf8)
        #expect("\(DiskURLCache.Request(request))".contains("body: 3 bytes"))
    }

    @Test func aRequestPrintsTheNamesOfItsFields() {
        var request = Responses.request("/a")
        #expect(!"\(DiskURLCache.Request(request))".contains("fields"))
        request.setValue("text/plain", forHTTPHeaderField: "Accept")
        #expect("\(DiskURLCache.Request(request))".contains("fields: Accept"))
    }

    @Test func aKeyPolicyPrintsWhatItChanges() {
        let policy = DiskURLCache.KeyPolicy.standard
        #expect(!"\(policy)".contains("body"))
        #expect("\(policy.includingBody(ofMethods: "POST"))".contains("body of POST"))
    }

    @Test func aCachePrintsItsLayersAndCounts() {
        let cache = DiskURLCache(
            memoryCapacity: 1 << 20, diskCapacity: 2 << 20, directory: scratch.url.appendingPathComponent("cache"))
        cache.storeCachedResponse(
            Responses.cached(Responses.url("/a"), "a"), for: Responses.request("/a"))
        _ = cache.cachedResponse(for: Responses.request("/a"))
        let printed = "\(cache)"
        #expect(printed.hasPrefix("DiskURLCache: 1048576 bytes in memory, 2097152 bytes in \(scratch.url.path)/cache"))
        let inMemory = "\(DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0))"
        #expect(inMemory.hasPrefix("DiskURLCache: 1048576 bytes in memory, no disk, private"))
        #expect(printed.contains("in use: \(cache.currentMemoryUsage) bytes in memory; memory hits: 1, disk hits: 0"))
        cache.isOffline = true
        #expect("\(cache)".hasPrefix("DiskURLCache, offline: "))
    }

    /// The value without its own way to print would fail the test above.
    @Test func anEvictionPrintsItsCount() {
        let printed = [1, 2].map { "\(DiskURLCache.Event.evicted(entries: $0, bytesOnDisk: 9))" }
        #expect(printed == ["evicted 1 entry, 9 bytes on disk", "evicted 2 entries, 9 bytes on disk"])
    }

    @Test func theTestSeesSecrets() {
        struct Plain { var text = PrintingTests.secret }
        struct Bytes { var data = Data(PrintingTests.secret.utf8) }
        #expect(texts(of: Plain()).allSatisfy(shows))
        #expect(texts(of: Bytes()).contains(where: shows))
    }

    @Test func anAnswerPrintsItsRequestStatusAndSource() async throws {
        let answer = try #require(try await samples()["Answer"])
        #expect("\(answer)".hasPrefix("POST http://"))
        #expect("\(answer)".contains("/a?…: 200, 9 bytes, miss: not in the cache"))
    }

    /// Nor in what is said of a pattern that is none.
    @Test func wrongPatternsArePrintedWithoutSecrets() throws {
        let matches: [DiskURLCache.Rule.Match] = [
            .path("https://user:\(Self.secret)@h/me"), .contentType("user:\(Self.secret)@x"),
            .url("ftp://h/x?token=\(Self.secret)"), .host("h?\(Self.secret)"),
        ]
        let cache = DiskURLCache.forTesting { settings in
            settings.rules = matches.map { .init(for: $0, storage: .never) }
        }
        let problem = try #require(cache.openingError?.description)
        #expect(problem.contains("is not a path") && !problem.contains(Self.secret))
        for match in matches { #expect(!"\(match)".contains(Self.secret)) }
        #expect("ftp://user:pa?\(Self.secret)@h".quotedWithoutCredentials == "\"…\"")
        #expect(!"ftp://user:\(Self.secret)@h/x?\(Self.secret)@".quotedWithoutCredentials.contains(Self.secret))
    }

    // MARK: One value of each type, full of secrets

    private func samples() async throws -> [String: Any] {
        let secret = Self.secret
        var samples: [String: Any] = [:]
        let clock = DiskURLCache.TestClock()
        let origin = DiskURLCache.StubOrigin(clock: clock) { _ in
            .init(fields: ["Cache-Control": "max-age=60", "Set-Cookie": "id=\(secret)"], body: secret)
        }
        let storage = SecretStorage()
        let cache = DiskURLCache.forTesting(clock: clock) { settings in
            settings.keyPolicy = .standard.includingBody(ofMethods: "POST").includingFields("Cookie")
            settings.diskCapacity = 1 << 20
            settings.diskStorage = storage
            settings.rules = [.init(for: .url("http://user:\(secret)@example.com/*"), storage: .memoryOnly)]
        }
        let host = try #require(origin.url.host)
        var request = URLRequest(url: try #require(URL(string: "http://user:\(secret)@\(host)/a?token=\(secret)")))
        request.httpMethod = "POST"
        request.httpBody = Data(secret.utf8)
        request.setValue("Bearer \(secret)", forHTTPHeaderField: "Authorization")
        request.setValue("id=\(secret)", forHTTPHeaderField: "Cookie")

        let answer = try await cache.data(for: request, session: URLSession(configuration: origin.configuration))
        #expect(answer.data == Data(secret.utf8))
        samples["Answer"] = answer
        samples["Report"] = answer.report
        samples["Outcome"] = answer.report.outcome
        samples["Event"] = DiskURLCache.Event.load(answer.report)
        // It shows the query to the person who asked.
        var plainURL = request
        plainURL.url = URL(string: "http://user:\(secret)@\(host)/a")
        samples["Explanation"] = cache.explanation(for: plainURL, response: answer.response)
        let listed = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0)
        listed.store(Data(secret.utf8), for: URLRequest(url: try #require(plainURL.url)), lifetime: 60)
        for await entry in listed.entries() { samples["CachedEntry"] = entry }
        samples["Statistics"] = cache.statistics
        samples["Configuration"] = {
            var settings = DiskURLCache.Configuration()
            settings.diskStorage = storage
            return settings
        }()
        samples["DiskURLCache"] = cache
        samples["StubOrigin"] = origin
        samples["Response"] = DiskURLCache.StubOrigin.Response(fields: ["Set-Cookie": secret], body: secret)
        samples["TestClock"] = clock
        samples["TestDisk"] = DiskURLCache.TestDisk()
        samples["Fault"] = DiskURLCache.TestDisk.Fault.full
        samples["Cassette"] = try await recorded(from: origin)

        let caught = Caught()
        let plain = DiskURLCache.Request(request)
        samples["Request"] = plain
        let stream = try await cache.load(plain, through: SecretTransport(caught: caught), variant: "other")
        for try await _ in stream {}
        samples["ResponseStream"] = stream
        let receiver: DiskURLCache.Receiver = try #require(caught.receiver)
        samples["Receiver"] = receiver
        samples["Head"] = stream.head
        let entry: DiskURLCache.Entry = try #require(storage.entries.withLock { $0.first })
        samples["Entry"] = entry
        cache.removeCachedResponse(for: request)
        let criteria: DiskURLCache.Criteria = try #require(storage.criteria.withLock { $0.first })
        samples["Criteria"] = criteria
        samples["Scope"] = criteria.scope

        let events = cache.events()
        cache.removeCachedResponses(host: "user:\(secret)@example.com")
        cache.removeCachedResponses(urlPrefix: "ftp://user:\(secret)@example.com/")
        let problems = Mutex(0)
        let heard = await events.elements(upTo: "two problems") { _ in
            problems.withLock { count in
                count += 1
                return count == 2
            }
        }
        for event in heard {
            for text in texts(of: event) { #expect(!shows(text)) }
            if case .problem(let error) = event { samples["Error"] = error }
        }
        samples["Code"] = (samples["Error"] as? DiskURLCache.Error)?.code
        let wrong = DiskURLCache.Rule.Match.host("user:\(secret)@example.com/")
        samples["Match"] = wrong
        samples["Rule"] = DiskURLCache.Rule(for: wrong, storage: .never)
        samples["KeyPolicy"] = cache.configuration.keyPolicy
        samples["WrongDigest"] = DiskURLCache.WrongDigest.accepted
        samples["Options"] = DiskURLCache.Options(lifetime: .always(3), tags: ["a"])
        samples["Fallback"] = DiskURLCache.Options.Fallback.anyStored
        samples["Storage"] = DiskURLCache.Options.Storage.never
        samples["Lifetime"] = DiskURLCache.Options.Lifetime.always(3)
        if #available(macOS 13, iOS 16, tvOS 16, watchOS 9, *) { samples["Instant"] = clock.now }
        samples["TimeSpan"] = DiskURLCache.TimeSpan.days(3)
        samples["Layer"] = DiskURLCache.Layer.memory
        samples["Reason"] = DiskURLCache.Reason.stale

        let folder = scratch.url.appendingPathComponent("cache", isDirectory: true)
        let onDisk = DiskURLCache(memoryCapacity: 0, diskCapacity: 1 << 20, directory: folder)
        samples["EventLog"] = DiskURLCache.EventLog(onDisk)
        request.httpMethod = "GET"
        request.httpBody = nil
        onDisk.storeCachedResponse(
            CachedURLResponse(response: answer.response, data: answer.data), for: request)
        onDisk.flush()
        let inspector = try DiskURLCache.Inspector(directory: folder)
        samples["Inspector"] = inspector
        let record: DiskURLCache.Inspector.Record = try #require(try inspector.records().first)
        samples["Record"] = record
        let simulation = DiskURLCache.Simulation([(date: Date(), event: .load(answer.report))])
        samples["Simulation"] = simulation
        samples["Result"] = simulation.run(capacity: 1 << 20)
        return samples
    }

    /// The names of the public types that have values, as the sources declare them.
    private static func publicTypes() throws -> Set<String> {
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appendingPathComponent("../../../Sources").standardizedFileURL
        let files =
            FileManager.default.enumerator(at: sources, includingPropertiesForKeys: nil)?
            .compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" } ?? []
        var names: Set<String> = []
        for file in files {
            for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
                let words = line.split { !$0.isLetter && !$0.isNumber }.map(String.init)
                guard words.first == "public" || words.first == "open",
                    let kind = words.firstIndex(where: { ["struct", "class", "enum", "actor"].contains($0) }),
                    kind <= 2,
                    kind + 1 < words.count, words[kind + 1].first?.isUppercase == true
                else { continue }
                names.insert(words[kind + 1])
            }
        }
        #expect(names.count > 25)
        return names
    }
}

private final class SecretStorage: DiskURLCache.EntryStorage {
    /// As an encrypted storage has it.
    let key = PrintingTests.secret
    let entries = Mutex<[DiskURLCache.Entry]>([])
    let criteria = Mutex<[DiskURLCache.Criteria]>([])

    func entries(named name: String) -> [DiskURLCache.Entry]? { [] }
    func store(_ entry: DiskURLCache.Entry, named name: String) { entries.withLock { $0.append(entry) } }
    func removeEntries(matching criteria: DiskURLCache.Criteria) { self.criteria.withLock { $0.append(criteria) } }
    func flush() {}
}

private final class Caught: Sendable {
    private let kept = Mutex<DiskURLCache.Receiver?>(nil)
    var receiver: DiskURLCache.Receiver? {
        get { kept.withLock { $0 } }
        set { kept.withLock { $0 = newValue } }
    }
}

private struct SecretTransport: DiskURLCache.Transport {
    let caught: Caught

    func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
        caught.receiver = receiver
        let fields = [("Cache-Control", "max-age=60"), ("Set-Cookie", "id=\(PrintingTests.secret)")]
        receiver.receive(DiskURLCache.Head(status: 200, fields: fields.map { (name: $0.0, value: $0.1) }))
        await receiver.receive(Data(PrintingTests.secret.utf8))
    }
}
