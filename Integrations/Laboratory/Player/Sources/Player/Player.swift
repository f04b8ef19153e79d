import Foundation

/// Loads what the laboratory asks for: a line of JSON for each request, and one for each answer, which may come in
/// another order. The caches keep their folders, so that a player that is started again has what it had.
///
/// It is a package of its own, which builds in little time and has no `CachingHTTPClient`, and a target of
/// Integrations, which has it.
@main struct Player {
    struct Order: Decodable, Sendable {
        var id: Int
        /// One of `Caches.ways`.
        var way: String
        var method: String
        var url: String
        var fields: [[String]]
    }

    struct Answer: Encodable {
        var id: Int
        /// 0 for an error.
        var status = 0
        var body = ""
        /// By names in lower case; of several field lines of a name the values, with commas between them.
        var fields: [String: String] = [:]

        init(id: Int, _ loaded: Loaded?) {
            self.id = id
            guard let loaded else { return }
            (status, body) = (loaded.status, String(decoding: loaded.body, as: UTF8.self))
            for (name, value) in loaded.fields {
                fields.merge([name.lowercased(): value]) { "\($0), \($1)" }
            }
        }
    }

    struct Loaded {
        var status: Int
        var body: Data
        var fields: [(String, String)]
    }

    static func main() async throws {
        let caches = Caches(directory: URL(fileURLWithPath: CommandLine.arguments[1]))
        write(Data(caches.ways.joined(separator: " ").utf8))
        await withDiscardingTaskGroup { group in
            while let line = readLine() {
                guard let order = try? JSONDecoder().decode(Order.self, from: Data(line.utf8)) else { continue }
                group.addTask {
                    let answer = Answer(id: order.id, try? await caches.load(order))
                    if let line = try? JSONEncoder().encode(answer) { write(line) }
                }
            }
        }
        await caches.end()
    }

    static func write(_ line: Data) {
        FileHandle.standardOutput.write(line + Data("\n".utf8))
    }
}
