import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `swift run --package-path Examples SignedAPI`: an API that takes `POST` with a signature in the header field `sign`.
/// Its answers are cached by URL + sign + body, and its failures, which come with status 200, are not cached at all.
@main
enum SignedAPI {
    static func main() async throws {
        let origin = try await Origin.start(delay: .milliseconds(20), handler: answer)
        let directory = temporaryDirectory("SignedAPI")
        defer { try? FileManager.default.removeItem(at: directory) }

        var settings = DiskURLCache.Configuration(directory: directory)
        settings.keyPolicy = .standard.includingFields("sign").includingBody(ofMethods: "POST", asJSON: true)
        settings.willCacheResponse = { response, _ in isFailure(response.data) ? nil : response }
        let cache = DiskURLCache(configuration: settings)
        URLCache.shared = cache

        let calls: [(note: String, body: String, user: String)] = [
            ("a search", #"{"query":"tea","page":1}"#, "ada"),
            ("the same again", #"{"query":"tea","page":1}"#, "ada"),
            ("the same, members in another order", #"{"page":1,"query":"tea"}"#, "ada"),
            ("another body", #"{"query":"tea","page":2}"#, "ada"),
            ("another user, so another sign", #"{"query":"tea","page":1}"#, "bob"),
            ("a failure: returnCode 7", #"{"query":"","page":1}"#, "ada"),
            ("the failure again", #"{"query":"","page":1}"#, "ada"),
        ]
        var table = TextTable(
            ("POST /api", .left), ("body", .left), ("sign", .left), ("from", .left), ("", .right), ("answer", .left))
        var sources: [String] = []
        for call in calls {
            var request = URLRequest(url: origin.url("/api"))
            request.httpMethod = "POST"
            request.httpBody = Data(call.body.utf8)
            request.setValue("application/json", forHTTPHeaderField: "Content-Type")
            request.setValue(sign(user: call.user), forHTTPHeaderField: "sign")
            let load = await load(request, watching: cache)
            sources.append(load.source)
            table.add(
                call.note, call.body, sign(user: call.user), load.source, milliseconds(load.seconds),
                String(decoding: load.data, as: UTF8.self))
        }
        await origin.stop()
        print("keyPolicy = .standard.includingFields(\"sign\").includingBody(ofMethods: \"POST\", asJSON: true)\n")
        print(table.text)
        let requests = await origin.log.count
        print("\nRequests at the origin: \(requests) of \(calls.count).")
        // The second and the third call are answered from the cache; the failure is requested each time.
        expect(sources == ["network", "memory", "memory", "network", "network", "network", "network"], "\(sources)")
        expect(requests == 5, "the origin got \(requests) requests, 5 were expected")
    }

    /// Only the app knows the meaning of a response: this API reports failures with status 200.
    @Sendable private static func isFailure(_ data: Data) -> Bool {
        let answer = try? JSONSerialization.jsonObject(with: data) as? [String: Any]
        return answer?["returnCode"] as? Int != 0
    }

    /// Stands for a real signature over device, user and parameters.
    private static func sign(user: String) -> String {
        String(user.utf8.reduce(0x51) { ($0 &* 31 &+ UInt32($1)) & 0xffff }, radix: 16)
    }

    @Sendable private static func answer(_ request: Origin.Request) async -> Origin.Reply {
        struct Search: Decodable {
            let query: String
            let page: Int
        }
        let fields = ["Content-Type": "application/json", "Cache-Control": "max-age=300"]
        guard let search = try? JSONDecoder().decode(Search.self, from: request.body), !search.query.isEmpty else {
            return Origin.Reply(fields: fields, text: #"{"returnCode":7}"#)
        }
        let sign = request.fields["sign"] ?? ""
        return Origin.Reply(
            fields: fields,
            text: #"{"returnCode":0,"hits":["\#(search.query) \#(search.page)"],"for":"\#(sign)"}"#)
    }
}
