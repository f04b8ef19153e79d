import AsyncHTTPClient
import DiskURLCache
import Foundation
import LoopbackOrigin
import NIOCore
import NIOHTTP1
import NIOSSL
import Testing

@testable import CachingHTTPClient

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

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

    /// As with the client alone: the certificate of a request is for the origin that the caller named.
    @Test func aRedirectToAnotherOriginGetsNoCertificateOfTheRequest() async throws {
        let other = origin
        let certificate = try #require(NIOSSLCertificate.fromPEMFile(files.path("server.pem")).first)
        let redirecting = try await Origin(
            tls: .makeServerConfiguration(
                certificateChain: [.certificate(certificate)],
                privateKey: .privateKey(try NIOSSLPrivateKey(file: files.path("server.key"), format: .pem)))
        ) { request, answer in
            let target = request.path == "/other" ? other.url("/a") : "/here"
            if request.path == "/here" {
                try await answer.whole(.ok, [:], "here")
            } else {
                try await answer.whole(.found, ["Location": target], "")
            }
        }
        let client = CachingHTTPClient(cache: cache)
        func load(_ path: String) async throws {
            var request = HTTPClientRequest(url: redirecting.url(path))
            var tls = TLSConfiguration.makeClientConfiguration()
            tls.trustRoots = .file(files.path("ca.pem"))
            request.tlsConfiguration = tls
            _ = try await client.execute(request, timeout: .seconds(120)).body.collect(upTo: 100)
        }
        try await load("/own")
        // Without the roots of the request, the client does not believe the other server.
        await #expect(throws: (any Error).self) { try await load("/other") }
        #expect(origin.requests.isEmpty)
        try await client.shutdown()
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

    /// As `URLSession` does, with an error that says so.
    @Test func aSessionBelievesWhomItsClientBelieves() async throws {
        var client = HTTPClient.Configuration()
        let url = try #require(URL(string: origin.url("/a")))
        let doubting = try cache.makeSession(configuration: .ephemeral, client: client)
        let error = await #expect(throws: URLError.self) { try await doubting.data(from: url) }
        #expect(error?.code == .secureConnectionFailed)
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(files.path("ca.pem"))
        client.tlsConfiguration = tls
        let believing = try cache.makeSession(configuration: .ephemeral, client: client)
        for _ in 0..<2 { #expect(try await believing.data(from: url).0 == Data("body".utf8)) }
        #expect(origin.requests.count == 1)
        // What the other one has stored is not for a session that does not believe the server.
        await #expect(throws: URLError.self) { try await doubting.data(from: url) }
        // A callback may say anything, so nobody knows whose answers these would be.
        tls.pskClientProvider = { _ in PSKClientIdentityResponse(key: NIOSSLSecureBytes([1]), identity: "somebody") }
        client.tlsConfiguration = tls
        #expect(throws: DiskURLCache.UnknownTLSIdentity.self) {
            try cache.makeSession(configuration: .ephemeral, client: client)
        }
        for session in [doubting, believing] { session.invalidateAndCancel() }
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

    private func identity(_ change: (inout HTTPClient.Configuration) -> Void) -> TLSIdentity {
        var configuration = HTTPClient.Configuration()
        change(&configuration)
        return TLSIdentity(&configuration)
    }

    @Test func aProxysAnswersAreNoOneElses() {
        func identity(_ proxy: HTTPClient.Configuration.Proxy?) -> TLSIdentity { self.identity { $0.proxy = proxy } }
        let proxy = identity(.server(host: "proxy", port: 3_128))
        #expect(identity(nil) == .anonymous && proxy != .anonymous && proxy != .unknown)
        #expect(proxy == identity(.server(host: "proxy", port: 3_128)))
        #expect(proxy != identity(.server(host: "proxy", port: 8_080)))
        // The proxy knows the client by what it is shown.
        let shown: [(HTTPClient.Authorization?, HTTPHeaders)] = [
            (nil, [:]), (.basic(username: "a", password: "b"), [:]), (.basic(username: "a", password: "c"), [:]),
            (.bearer(tokens: "YTpi"), [:]), (nil, ["X-Tenant": "a"]), (nil, ["X-Tenant": "b"]),
        ]
        let identities = shown.map { authorization, fields in
            identity(.server(host: "proxy", port: 3_128, authorization: authorization, connectHeaders: fields))
        }
        for (index, one) in identities.enumerated() {
            #expect(!identities[..<index].contains(one), "\(index)")
            let (authorization, fields) = shown[index]
            #expect(
                one
                    == identity(
                        .server(host: "proxy", port: 3_128, authorization: authorization, connectHeaders: fields)))
        }
    }

    /// An origin may know a client by its address.
    @Test func anAddressOfTheClientsOwnIsNoOneElses() async throws {
        let own = identity { $0.localAddress = "127.0.0.1" }
        #expect(own != .anonymous && own == identity { $0.localAddress = "127.0.0.1" })
        #expect(own != identity { $0.localAddress = "127.0.0.2" })

        let origin = try await Origin { _, answer in
            try await answer.whole(.ok, ["Cache-Control": "max-age=60"], "body")
        }
        let client = CachingHTTPClient(cache: cache)
        var request = HTTPClientRequest(url: origin.url("/a"))
        for address in [nil, "127.0.0.1"] {
            request.localAddress = address
            for _ in 0..<2 { _ = try await client.execute(request, timeout: .seconds(120)).body.collect(upTo: 100) }
        }
        #expect(origin.requests.count == 2)
        request.localAddress = "127.0.0.2"
        let other = try await client.explanation(for: request)
        #expect(other.description.contains("Loads from the network"))
        try await client.shutdown()
    }
}
