import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Loads that the cache is not used for: a POST, uploads, downloads.
enum PassThroughRows {
    static let groups =
        [
            Group("POST") { report, options, scratch in
                let body = Content.body(small)
                try row(
                    "POST, 1 KB and 1 KB back", report, options.rounds(300), scratch, bytes: small,
                    request: {
                        $0.httpMethod = "POST"
                        $0.httpBody = body
                    },
                    load: { try $0.load([$1], expecting: small) })
            }
        ]
        + [16 << 10, 1 << 20].flatMap { size in
            let name = FirstLoadRows.name(size)
            let rounds = size < 1 << 20 ? 300 : 80
            return [
                Group("upload, \(name)") { report, options, scratch in
                    let body = Content.body(size)
                    try row(
                        "upload, \(name)", report, options.rounds(rounds), scratch, bytes: small,
                        request: { $0.httpMethod = "PUT" },
                        load: { try $0.upload(body, with: $1, expecting: small) })
                },
                Group("download, \(name)") { report, options, scratch in
                    try row(
                        "download, \(name)", report, options.rounds(rounds), scratch, bytes: size,
                        load: { try $0.download($1, expecting: size) })
                },
            ]
        }

    private static let small = 1 << 10

    private static func row(
        _ name: String, _ report: Report, _ rounds: Int, _ scratch: Scratch, bytes: Int,
        request change: @escaping (inout URLRequest) -> Void = { _ in },
        load: @escaping (Client, URLRequest) throws -> Void
    ) throws {
        let origin = try OriginProcess()
        let clients = [Client.cached(scratch.folder(UUID().uuidString)), .stock()]
        let samples = try Measure.alternately(
            rounds: rounds,
            clients.map { client in
                Side(
                    client.name,
                    input: { number in
                        var request = origin.request(.noStore, bytes: bytes, number, for: client.name)
                        change(&request)
                        return request
                    },
                    operation: { try load(client, $0) })
            })
        report.add(Row(name, samples, targets: [1.05]))
    }
}
