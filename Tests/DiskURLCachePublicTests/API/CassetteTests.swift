import DiskURLCache
import DiskURLCacheTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `DiskURLCache.Cassette`: what was recorded answers without a network, and nothing else does.
@Suite(.fewAtATime) struct CassetteTests {
    private let scratch: ScratchDirectory
    private let origin: DiskURLCache.StubOrigin

    init() throws {
        scratch = try ScratchDirectory("cassette")
        let count = Counter()
        origin = DiskURLCache.StubOrigin { request in
            let path = request.url?.path ?? ""
            if path == "/moved" { return .init(status: 302, fields: ["Location": "/get?token=abc123"]) }
            if path == "/tokens" {
                let next = "</get?page=1>; rel=first, <https://ada:abc123@h.example/get?token=abc123>; rel=\"next\""
                return .init(
                    fields: [
                        "Content-Location": "/get?page=1#access_token=abc123&state=1", "Link": next,
                        "Refresh": "0; URL='/get?name=o'neil&token=abc123'", "Access_Token": "abc123",
                    ], body: "none")
            }
            if path == "/marked" { return .init(body: "\u{FEFF}text") }
            return .init(
                fields: ["Set-Cookie": "id=abc123", "Content-Type": "application/json", "X-Kept": "yes"],
                body: #"{"answer": \#(count.next()), "access_token": "abc123"}"#)
        }
    }

    private func request(_ path: String, json: String? = nil) -> URLRequest {
        var request = URLRequest(url: URL(string: path, relativeTo: origin.url)!.absoluteURL)
        request.setValue("Bearer abc123", forHTTPHeaderField: "Authorization")
        if let json {
            request.httpMethod = "POST"
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.httpBody = Data(json.utf8)
        }
        return request
    }

    private func cassette(records: Bool = false) throws -> DiskURLCache.Cassette {
        try DiskURLCache.Cassette(at: scratch.url, recordingWith: records ? origin.configuration : nil)
    }

    private static let first = #"{"model": "a", "messages": [{"content": "one"}], "password": "abc123"}"#
    private static let second = #"{"model": "a", "messages": [{"content": "two"}]}"#

    private struct Answer: Decodable {
        let answer: Int
        let token: String

        private enum CodingKeys: String, CodingKey {
            case answer
            case token = "access_token"
        }
    }

    /// The number in each answer.
    /// - Parameter token: what each answer has for a secret.
    private func answers(_ cassette: DiskURLCache.Cassette, token: String = "withheld") async throws -> [Int] {
        let session = try cassette.makeSession()
        var answers: [Int] = []
        for request in [
            request("/post", json: Self.first), request("/post", json: Self.second),
            request("/post", json: Self.second), request("/get?token=abc123&page=1"),
            request("/moved"),
        ] {
            let (data, response) = try await session.data(for: request)
            #expect((response as? HTTPURLResponse)?.value(forHTTPHeaderField: "X-Kept") == "yes")
            let answer = try JSONDecoder().decode(Answer.self, from: data)
            #expect(answer.token == token)
            answers.append(answer.answer)
        }
        return answers
    }

    @Test func whatWasRecordedIsReplayedWithoutANetwork() async throws {
        let recorded = try await answers(cassette(records: true), token: "abc123")
        #expect(Set(recorded).count == 5 && origin.requests.count == 6)
        #expect(origin.requests.last?.url?.query == "token=abc123", "who records goes on with what it was given")
        #expect(try await answers(cassette()) == recorded)
        #expect(origin.requests.count == 6)

        // Members of an object have no order; the last answer is given again.
        let session = try cassette().makeSession()
        let reordered = request("/post", json: #"{"messages": [{"content": "two"}], "model": "a"}"#)
        for expected in [recorded[1], recorded[2], recorded[2]] {
            let (data, _) = try await session.data(for: reordered)
            #expect(try JSONDecoder().decode(Answer.self, from: data).answer == expected)
        }

        // Recording again takes the place of what was recorded.
        let again = try await answers(cassette(records: true), token: "abc123")
        #expect(try await answers(cassette()) == again && again != recorded)
        #expect(try FileManager.default.contentsOfDirectory(atPath: scratch.url.path).count == 6)
    }

    @Test func aMarkOfTheByteOrderIsReplayed() async throws {
        for records in [true, false] {
            let (data, _) = try await cassette(records: records).makeSession().data(for: request("/marked"))
            #expect(data == Data("\u{FEFF}text".utf8), "\(records)")
        }
    }

    @Test func credentialsAreNotWritten() async throws {
        _ = try await answers(cassette(records: true), token: "abc123")
        // Its type is that of a form if the program names none.
        var untyped = request("/post", json: Self.first)
        untyped.setValue(nil, forHTTPHeaderField: "Content-Type")
        let session = try cassette(records: true).makeSession()
        _ = try await session.data(for: untyped)
        _ = try await session.data(for: request("/tokens"))
        let deep = #"{"token": ["abc123"], "secret": {"a": {"b": 123456}}, "password": null, "apikey": true}"#
        _ = try await session.data(for: request("/deep", json: deep))
        // Here nobody adds the type before the cassette sees the request.
        var form = request("/form")
        form.httpMethod = "POST"
        form.httpBody = Data("page=1&password=abc123".utf8)
        _ = try await DiskURLCache.forTesting().load(form, through: try cassette(records: true)).response
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.url.path)
        // The one without a type takes the place of the same request.
        #expect(names.count == 9)
        for name in names {
            let text = try String(contentsOf: scratch.url.appendingPathComponent(name), encoding: .utf8)
            #expect(!text.contains("abc123") && !name.contains("abc123"), "\(name): \(text)")
            #expect(!text.contains("123456"), "\(name): \(text)")
        }
    }

    @Test func anUnknownRequestNamesTheNearestAndWhatDiffers() async throws {
        _ = try await answers(cassette(records: true), token: "abc123")
        let count = origin.requests.count
        let session = try cassette().makeSession()
        for (request, expected) in [
            (
                request("/post", json: #"{"model": "a", "messages": [{"content": "three"}]}"#),
                #"messages[0].content is "three", recorded is "#
            ),
            (request("/get?token=other&page=2"), #"the query item page is "2", recorded is "1""#),
            (request("/get?page=1"), #"the query item token is not there, recorded is "withheld""#),
            (request("/got"), "recorded is"),
        ] {
            let error = await #expect(throws: URLError.self) { try await session.data(for: request) }
            #expect(error?.code == .resourceUnavailable)
            let text = error?.localizedDescription ?? ""
            #expect(text.contains("is not recorded in") && text.contains(expected), "\(text)")
        }
        #expect(origin.requests.count == count)
    }
}

private final class Counter: @unchecked Sendable {
    // `@unchecked`: under `lock` only.
    private let lock = NSLock()
    private var count = 0

    func next() -> Int {
        lock.lock()
        defer { lock.unlock() }
        count += 1
        return count
    }
}
