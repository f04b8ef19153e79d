import ExampleSupport
import Foundation

enum OriginOrder: Codable, Sendable {
    /// Reports the requests below a path since the last such order.
    case count(String)
    /// Changes the resource without telling a cache.
    case change([String])
}

struct Tally: Codable {
    var requests = 0
    var bytes = 0
}

/// The origin, in a separate process. It counts the requests.
actor OriginProcess {
    private var versions: [String: Int] = [:]
    private var served: [(path: String, bytes: Int)] = []

    /// Reports its port, then takes orders.
    static func run() async throws {
        let process = OriginProcess()
        let origin = try await Origin.start(delay: .seconds(Resource.delay)) { await process.answer($0) }
        try Orders.reply(origin.baseURL.port)
        for await order in Orders.stream(of: OriginOrder.self) { try await process.obey(order) }
    }

    private func obey(_ order: OriginOrder) throws {
        switch order {
        case .count(let prefix):
            let counted = served.filter { $0.path.hasPrefix(prefix) }
            served.removeAll { $0.path.hasPrefix(prefix) }
            try Orders.reply(Tally(requests: counted.count, bytes: counted.reduce(0) { $0 + $1.bytes }))
        case .change(let paths):
            for path in paths { versions[path, default: 1] += 1 }
            try Orders.reply(true)
        }
    }

    private func answer(_ request: Origin.Request) async -> Origin.Reply {
        let path = request.path
        guard Resource.shelf(path) != nil else { return Origin.Reply(404, text: "Nothing here.") }
        if Resource.shelf(path) == .rush { try? await Task.sleep(for: .seconds(Resource.rushDelay)) }
        if request.method == "PUT" {
            versions[path, default: 1] += 1
            served.append((path, 0))
            return Origin.Reply(204)
        }
        let version = versions[path, default: 1]
        let tag = "\"\(version)\""
        let isKnown = request.fields["if-none-match"]?.contains(tag) == true
        let body = isKnown ? Data() : Resource.body(path, version: version)
        served.append((path, body.count))
        return Origin.Reply(
            isKnown ? 304 : 200,
            fields: [
                "Content-Type": "text/plain", "Cache-Control": Resource.cacheControl(path), "ETag": tag,
                Resource.madeField: "\(Date().timeIntervalSince1970)",
            ], body: body)
    }
}
