import DiskURLCache
import ExampleSupport
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// `swift run --package-path Examples AccountSwitch`: two accounts of an app use the same cache. They never see each
/// other's answers, and logging one out removes its own answers only.
@main
enum AccountSwitch {
    static func main() async throws {
        let origin = try await Origin.start(delay: .milliseconds(20)) { request in
            let token = request.fields["authorization"]?.split(separator: " ").last
            let who = token.map { $0.replacingOccurrences(of: "token-of-", with: "") } ?? "everybody"
            return Origin.Reply(
                fields: ["Content-Type": "text/plain", "Cache-Control": "private, max-age=600"],
                text: "\(request.path) for \(who)")
        }
        let directory = temporaryDirectory("AccountSwitch")
        defer { try? FileManager.default.removeItem(at: directory) }
        let cache = DiskURLCache(memoryCapacity: 4 << 20, diskCapacity: 50 << 20, directory: directory)
        URLCache.shared = cache

        let inbox = origin.url("/inbox")
        let logo = URLRequest(url: origin.url("/logo"))
        var table = TextTable(("", .left), ("request", .left), ("as", .left), ("from", .left), ("answer", .left))
        func show(_ step: String, _ request: URLRequest, _ name: String) async {
            let load = await load(request, watching: cache)
            table.add(
                step, request.url?.path ?? "", name, load.source, String(decoding: load.data, as: UTF8.self))
        }

        await show("first loads", request(inbox, as: "ada"), "ada")
        await show("", request(inbox, as: "bob"), "bob")
        await show("", logo, "-")
        await show("once more", request(inbox, as: "ada"), "ada")
        await show("", request(inbox, as: "bob"), "bob")
        cache.removeCachedResponses(tag: "account:ada")
        await show("ada logged out", request(inbox, as: "bob"), "bob")
        await show("", logo, "-")
        let isGone = !cache.contains(request(inbox, as: "ada"))
        await show("ada is back", request(inbox, as: "ada"), "ada")
        await origin.stop()
        print(table.text)

        cache.flush()
        print("\nAfter ada logged out, her entry was \(isGone ? "gone" : "STILL THERE").")
        let secrets = try files(in: directory).filter { $0.range(of: Data("token-of".utf8)) != nil }
        print("Files that contain a token: \(secrets.count).")
        if !isGone || !secrets.isEmpty { exit(1) }
    }

    private static func request(_ url: URL, as account: String) -> URLRequest {
        var request = URLRequest(url: url)
        request.setValue("Bearer token-of-\(account)", forHTTPHeaderField: "Authorization")
        request.cacheOptions = .init(tags: ["account:\(account)"])
        return request
    }

    private static func files(in directory: URL) throws -> [Data] {
        let names = try FileManager.default.subpathsOfDirectory(atPath: directory.path)
        return names.compactMap { try? Data(contentsOf: directory.appendingPathComponent($0)) }
    }
}
