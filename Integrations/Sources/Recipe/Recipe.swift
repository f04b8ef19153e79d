// The recipe "Use AsyncHTTPClient" of the article "Recipes", against an origin on this machine; exits with status 1 if
// it does not cache.

import AsyncHTTPClient
import CachingHTTPClient
import Foundation
import LoopbackOrigin
import NIOCore
import NIOHTTP1

@main
enum Recipe {
    static func main() async throws {
        let origin = try await Origin { _, answer in
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], "a feed")
        }
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("Recipe-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: directory) }

        let client = CachingHTTPClient(
            storage: .init(memoryCapacity: 64 << 20, diskCapacity: 1 << 30, directory: directory))
        for _ in 1...3 {
            let request = HTTPClientRequest(url: origin.url("/feed"))
            let response = try await client.execute(request, timeout: .seconds(10))
            let body = try await response.body.collect(upTo: 1 << 20)  // a body that is read to its end is stored
            print(response.status, String(buffer: body))
        }
        try await client.shutdown()

        print("Requests at the origin: \(origin.requests.count) of 3.")
        if origin.requests.count != 1 { exit(1) }
    }
}
