import AsyncHTTPClient
import CachingHTTPClient
import DiskURLCache
import LoopbackOrigin
import NIOCore
import NIOSSL
import Testing

/// Clients of one cache that believe other servers share nothing.
@Suite(.timeLimit(.minutes(2)), .enabled(if: Certificates.canBeMade, "openssl is not installed"))
struct TrustTests {
    private let files: Certificates
    private let origin: Origin
    private let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 0)

    init() async throws {
        files = try Certificates()
        let certificate = try #require(NIOSSLCertificate.fromPEMFile(files.path("server.pem")).first)
        origin = try await Origin(
            tls: .makeServerConfiguration(
                certificateChain: [.certificate(certificate)],
                privateKey: .privateKey(try NIOSSLPrivateKey(file: files.path("server.key"), format: .pem)))
        ) { _, answer in try await answer.whole(.ok, ["Cache-Control": "max-age=60"], "body") }
    }

    private func load(_ change: (inout HTTPClient.Configuration, inout TLSConfiguration) -> Void) async throws {
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.retryConnectionEstablishment = false
        var tls = TLSConfiguration.makeClientConfiguration()
        change(&configuration, &tls)
        configuration.tlsConfiguration = tls
        let client = CachingHTTPClient(cache: cache, configuration: configuration)
        let result: Result<Void, any Error>
        do {
            let request = HTTPClientRequest(url: origin.url("/a"))
            _ = try await client.execute(request, timeout: .seconds(120)).body.collect(upTo: 100)
            result = .success(())
        } catch {
            result = .failure(error)
        }
        try await client.shutdown()
        try result.get()
    }

    @Test func rootsAreNoOneElses() async throws {
        let roots = try NIOSSLCertificate.fromPEMFile(files.path("ca.pem"))
        for _ in 0..<2 { try await load { $1.trustRoots = .certificates(roots) } }
        // The same, from a file.
        try await load { $1.trustRoots = .file(files.path("ca.pem")) }
        #expect(origin.requests.count == 1)
        for _ in 0..<2 { try await load { $1.additionalTrustRoots = [.file(files.path("ca.pem"))] } }
        #expect(origin.requests.count == 2)
        // This one does not believe the server.
        await #expect(throws: (any Error).self) { try await load { _, _ in } }
    }

    @Test func namesOfHostsAreNoOneElses() async throws {
        for _ in 0..<2 { try await load { $1.trustRoots = .file(files.path("ca.pem")) } }
        #expect(origin.requests.count == 1)
        for _ in 0..<2 {
            try await load {
                $0.dnsOverride = ["localhost": "127.0.0.1"]
                $1.trustRoots = .file(files.path("ca.pem"))
            }
        }
        #expect(origin.requests.count == 2)
    }
}
