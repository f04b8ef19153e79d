import DiskURLCacheAdapters
import DiskURLCacheTesting
import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A `Content-Length` that is not true of the body: whatever way a response came, what is stored has the right length,
/// and a body that ended too early is not stored (RFC 9111 §3.3, RFC 9112 §6.3).
@Suite(.fewAtATime) struct ContentLengthTests {
    struct Lie: Sendable, CustomTestStringConvertible {
        var name: String
        var status = 200
        var fields: [(name: String, value: String)]
        var body = "12345"
        /// The stored field; nil when none is to be stored.
        var storedLength: String? = "5"
        var reason: String?
        var testDescription: String { name }
    }

    static let lies = [
        Lie(name: "true", fields: [("Content-Length", "5")]),
        Lie(name: "none", fields: [], storedLength: nil),
        Lie(name: "too short a body", fields: [("Content-Length", "10")], storedLength: nil, reason: "wrong-length"),
        Lie(name: "too long a body", fields: [("Content-Length", "3")]),
        Lie(name: "twice, different", fields: [("Content-Length", "3"), ("Content-Length", "9")]),
        Lie(name: "twice, equal", fields: [("Content-Length", "5"), ("Content-Length", "5")]),
        Lie(name: "twice, equal, too short a body", fields: [("Content-Length", "9, 9")], reason: "wrong-length"),
        Lie(name: "no number", fields: [("Content-Length", "5x")]),
        Lie(name: "negative", fields: [("Content-Length", "-5")]),
        Lie(name: "above all numbers", fields: [("Content-Length", "99999999999999999999")], reason: "wrong-length"),
        Lie(
            name: "beside Transfer-Encoding", fields: [("Content-Length", "10"), ("Transfer-Encoding", "chunked")],
            storedLength: nil),
        Lie(
            name: "of coded bytes", fields: [("Content-Length", "25"), ("Content-Encoding", "gzip")],
            storedLength: "25"),
        Lie(
            name: "of coded bytes, no number", fields: [("Content-Length", "x"), ("Content-Encoding", "br")],
            storedLength: nil),
        Lie(
            name: "coded by identity, too short a body",
            fields: [("Content-Length", "25"), ("Content-Encoding", "identity")], reason: "wrong-length"),
        Lie(name: "204 with a body", status: 204, fields: [("Content-Length", "5")], reason: "wrong-length"),
        Lie(
            name: "204 with a length", status: 204, fields: [("Content-Length", "5")], body: "", storedLength: nil),
        Lie(name: "205 with a body", status: 205, fields: [("Content-Length", "5")], reason: "wrong-length"),
    ]

    private struct Liar: DiskURLCache.Transport {
        let lie: Lie

        func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
            receiver.receive(
                DiskURLCache.Head(status: lie.status, fields: lie.fields + [("Cache-Control", "max-age=60")]))
            await receiver.receive(Data(lie.body.utf8))
        }
    }

    @Test(arguments: lies) func throughATransport(_ lie: Lie) async throws {
        let scratch = try ScratchDirectory()
        var settings = DiskURLCache.Configuration(directory: scratch.url)
        settings.clock = ManualClock().wallClock
        let request = DiskURLCache.Request(Responses.request("/lie"))
        for layer in [DiskURLCache.Layer.memory, .disk] {
            let cache = DiskURLCache(configuration: settings)
            if layer == .disk {
                cache.flush()
                cache.removeAllCachedResponses(from: .memory)
            } else {
                let first = try await cache.load(request, through: Liar(lie: lie))
                #expect(try await body(first) == lie.body)
                #expect(first.report.notStoredReason?.code == lie.reason)
            }
            #expect(cache.contains(request.urlRequest) == (lie.reason == nil))
            guard lie.reason == nil else { continue }
            let again = try await cache.load(request, through: Liar(lie: lie))
            #expect(again.report.outcome == .hit(layer))
            #expect(try await body(again) == lie.body)
            let lengths = again.head.fields.filter { $0.name == "Content-Length" }.map(\.value)
            #expect(lengths == (lie.storedLength.map { [$0] } ?? []))
        }
    }

    private func body(_ stream: DiskURLCache.ResponseStream) async throws -> String {
        var data = Data()
        for try await piece in stream { data += piece }
        return String(decoding: data, as: UTF8.self)
    }

    @Test func asAnAppStores() throws {
        let cache = DiskURLCache.forTesting()
        func stored(_ fields: [String: String], _ body: String = "12345", method: String = "GET") -> String? {
            var request = Responses.request("/a")
            request.httpMethod = method
            cache.removeAllCachedResponses()
            let fields = ["Cache-Control": "max-age=60"].merging(fields) { $1 }
            cache.storeCachedResponse(Responses.cached(Responses.url("/a"), body, fields: fields), for: request)
            return cache.key(for: request).flatMap { key in
                cache.store.lookup(key).variants().first?.metadata.http?.fields["Content-Length"] ?? "-"
            }
        }
        #expect(stored(["Content-Length": "5"]) == "5")
        #expect(stored(["Content-Length": "3"]) == "5")
        #expect(stored(["Content-Length": "x"]) == "5")
        #expect(stored([:]) == "-")
        #expect(stored(["Content-Length": "10"]) == "-")
        #expect(!cache.contains(Responses.request("/a")))
        #expect(stored(["Content-Length": "10", "Content-Encoding": "gzip"]) == "10")
        #expect(stored(["Content-Length": "10"], "", method: "HEAD") == "-", "the answer to a HEAD is not stored")
    }

    /// The app changed the body after it had arrived whole.
    @Test func asAnAppEdits() async throws {
        let cache = DiskURLCache.forTesting { settings in
            settings.willCacheResponse = { cached, _ in
                CachedURLResponse(response: cached.response, data: Data("12".utf8))
            }
        }
        let request = DiskURLCache.Request(Responses.request("/edited"))
        let whole = Lie(name: "", fields: [("Content-Length", "5")])
        let first = try await cache.load(request, through: Liar(lie: whole))
        #expect(try await body(first) == "12345")
        let again = try await cache.load(request, through: Liar(lie: whole))
        #expect(try await body(again) == "12")
        #expect(again.response.value(forHTTPHeaderField: "Content-Length") == "2")
        let short = Lie(name: "", fields: [("Content-Length", "9")])
        let other = DiskURLCache.Request(Responses.request("/short"))
        let cut = try await cache.load(other, through: Liar(lie: short))
        #expect(try await body(cut) == "12345")
        #expect(cut.report.notStoredReason?.code == "wrong-length")
    }

    /// The digests are those of the body that arrived; an app that gives new fields says what they are.
    @Test(arguments: ["body", "body and fields", "userInfo"])
    func theDigestsOfABodyThatTheAppChangesGo(what: String) async throws {
        let cache = DiskURLCache.forTesting { settings in
            settings.wrongDigest = .failed
            settings.willCacheResponse = { cached, request in
                if what == "userInfo" {
                    return CachedURLResponse(
                        response: cached.response, data: cached.data, userInfo: ["a": 1], storagePolicy: .allowed)
                }
                guard what == "body and fields", let url = request.url else {
                    return CachedURLResponse(response: cached.response, data: Data("12".utf8))
                }
                let fields: HeaderFields = ["Cache-Control": "max-age=60", "Repr-Digest": Self.digest(of: "12")]
                let head = URLResponse.http(url: url, status: 200, fields: fields)
                return CachedURLResponse(response: head, data: Data("12".utf8))
            }
        }
        let request = DiskURLCache.Request(Responses.request("/edited"))
        let whole = Lie(name: "", fields: [("Content-Length", "5"), ("Repr-Digest", Self.digest(of: "12345"))])
        #expect(try await body(cache.load(request, through: Liar(lie: whole))) == "12345")
        let again = try await cache.load(request, through: Liar(lie: whole))
        #expect(again.report.outcome == .hit(.memory))
        let text = what == "userInfo" ? "12345" : "12"
        #expect(try await body(again) == text)
        let digest = again.response.value(forHTTPHeaderField: "Repr-Digest")
        #expect(digest == (what == "body" ? nil : Self.digest(of: text)))
    }

    private static func digest(of text: String) -> String {
        var hash = ContentHash(.sha256)
        hash.update(Data(text.utf8))
        return "sha-256=:\(Data(hash.digest).base64EncodedString()):"
    }

    /// A real wire: chunks, and a length beside them.
    @Test(.loadsOnLinux, .enabled(if: LoadingHarness.storesForSessions)) func throughASession() async throws {
        let origin = try OriginServer { _ in
            var response = OriginResponse()
            response.rawBytes = Data(
                ("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
                    + "5\r\nhello\r\n0\r\n\r\n").utf8)
            return response
        }
        let harness = try LoadingHarness()
        for _ in 0..<2 { #expect(try await harness.load(origin.url("/a")).text == "hello") }
        let again = try await harness.load(origin.url("/a"))
        #expect(again.response.value(forHTTPHeaderField: "Content-Length") == nil)
        #expect(origin.requests.count == 1)
    }
}
