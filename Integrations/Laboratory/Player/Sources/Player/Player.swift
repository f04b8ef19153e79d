import DiskURLCache
import Foundation

/// Loads what the laboratory asks for: a line of JSON for each request, and one for each answer, which may come in
/// another order. The caches are made for each run, and hold what all its histories left.
@main struct Player {
    struct Order: Decodable, Sendable {
        var id: Int
        /// The way to load: `session`, `direct` or `shared`.
        var way: String
        var method: String
        var url: URL
        var fields: [[String]]
    }

    struct Answer: Encodable {
        var id: Int
        /// 0 for an error.
        var status: Int
        var body: String
    }

    static func main() async throws {
        let directory = URL(fileURLWithPath: CommandLine.arguments[1])
        var settings = DiskURLCache.Configuration(
            memoryCapacity: 64 << 20, diskCapacity: 1 << 30, directory: directory.appendingPathComponent("private"))
        let cache = DiskURLCache(configuration: settings)
        settings.directory = directory.appendingPathComponent("shared")
        settings.isShared = true
        let shared = DiskURLCache(configuration: settings)
        settings.directory = directory.appendingPathComponent("session")
        settings.isShared = false
        let ofSession = DiskURLCache(configuration: settings)
        let plain = URLSessionConfiguration.ephemeral
        plain.httpCookieStorage = nil
        plain.httpMaximumConnectionsPerHost = 64
        let session = ofSession.makeSession(configuration: plain)

        @Sendable func load(_ order: Order) async throws -> (Data, Int) {
            var request = URLRequest(url: order.url)
            request.httpMethod = order.method
            for field in order.fields { request.setValue(field[1], forHTTPHeaderField: field[0]) }
            if order.method == "POST" || order.method == "PUT" { request.httpBody = Data("x".utf8) }
            if order.way == "session" {
                let (data, response) = try await session.data(for: request)
                return (data, (response as? HTTPURLResponse)?.statusCode ?? 0)
            }
            let answer = try await (order.way == "shared" ? shared : cache).data(for: request)
            return (answer.data, answer.response.statusCode)
        }

        await withDiscardingTaskGroup { group in
            while let line = readLine() {
                guard let order = try? JSONDecoder().decode(Order.self, from: Data(line.utf8)) else { continue }
                group.addTask {
                    let (data, status) = (try? await load(order)) ?? (Data(), 0)
                    let answer = Answer(id: order.id, status: status, body: String(decoding: data, as: UTF8.self))
                    guard let line = try? JSONEncoder().encode(answer) else { return }
                    FileHandle.standardOutput.write(line + Data("\n".utf8))
                }
            }
        }
    }
}
