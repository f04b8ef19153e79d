// A cache in front of an origin, to which the engine of http-tests/cache-tests plays its suite: `CacheTests/play.mjs`
// starts it. It passes on everything, which a server for people should not: see the article "A gateway".

import AsyncHTTPClient
import CachingHTTPClient
import DiskURLCache
import Foundation
import LoopbackOrigin
import NIOCore
import NIOHTTP1

@main
enum SuiteProxy {
    /// Its arguments: the URL of the origin without a path, and the folder of the cache.
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3 else {
            print("SuiteProxy ORIGIN FOLDER")
            exit(64)
        }
        var storage = DiskURLCache.Configuration(
            memoryCapacity: 64 << 20, diskCapacity: 1 << 30, directory: URL(fileURLWithPath: arguments[2]))
        storage.isShared = true
        // The suite asks caches that look for this field about RFC 9213, and nothing else of it.
        storage.targetedFields = ["CDN-Cache-Control"]
        storage.wrongDigest = .notStored
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 64
        let client = CachingHTTPClient(
            cache: DiskURLCache(configuration: storage), configuration: configuration, followsRedirects: false)
        let proxy = try await Origin { request, answer in
            let response: HTTPClientResponse
            do {
                response = try await ask(arguments[1], request, by: client)
            } catch {
                return try await answer.whole(.badGateway, [:], "\(error)")
            }
            // An error in the body ends the connection.
            try await answer.head(response.status, passedOn(response.headers, isAnswer: true))
            guard request.head.method != .HEAD else { return }
            for try await piece in response.body { try await answer.piece(piece) }
        }
        FileHandle.standardOutput.write(Data("\(proxy.port)\n".utf8))
        // It ends when its input does.
        while readLine() != nil {}
        try await client.shutdown()
    }

    private static func ask(
        _ origin: String, _ request: Origin.Request, by client: CachingHTTPClient
    ) async throws -> HTTPClientResponse {
        var asked = HTTPClientRequest(url: origin + request.path)
        // SwiftNIO reads `M-SEARCH`, and would write `MSEARCH`.
        asked.method = request.head.method == .MSEARCH ? .RAW(value: "M-SEARCH") : request.head.method
        asked.headers = passedOn(request.head.headers)
        if request.body.readableBytes > 0 { asked.body = .bytes(request.body) }
        return try await client.execute(asked, timeout: .seconds(10))
    }

    /// RFC 9110 §7.6.1: what `Connection` names is for one connection only.
    private static func passedOn(_ headers: HTTPHeaders, isAnswer: Bool = false) -> HTTPHeaders {
        let ofOneConnection =
            ["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"]
            + headers[canonicalForm: "Connection"].map { $0.lowercased() }
            + (isAnswer ? [] : ["host", "content-length"])
        return HTTPHeaders(headers.filter { !ofOneConnection.contains($0.name.lowercased()) })
    }
}
