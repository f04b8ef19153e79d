import AsyncHTTPClient
import CachingHTTPClient
import Foundation
import NIOSSL
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A session over `HTTPClient` with a server that nobody here wrote, by TLS and HTTP/2 and without.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: NginxServer.path != nil && Certificates.canBeMade, "nginx or openssl is not installed"))
struct SessionNginxTests {
    private let cache: DiskURLCache
    private let scratch: ScratchDirectory
    private let server: NginxServer
    private let session: URLSession

    init() throws {
        let certificates = try Certificates()
        scratch = try ScratchDirectory("session-nginx")
        cache = DiskURLCache(memoryCapacity: 16 << 20, diskCapacity: 64 << 20, directory: scratch.appending("cache"))
        server = try NginxServer(ports: 2) { ports in
            """
                gzip_types text/plain;
                add_header X-Request $request_id always;
                add_header X-Protocol $server_protocol always;
                server {
                    listen 127.0.0.1:\(ports[0]);
                    listen 127.0.0.1:\(ports[1]) ssl http2;
                    ssl_certificate \(certificates.path("server.pem"));
                    ssl_certificate_key \(certificates.path("server.key"));
                    root html;
                    location /fresh/ { expires 1h; }
                    location /checked/ { expires -1; }
                    location /gzip/ { expires 1h; gzip on; gzip_vary on; gzip_min_length 0; }
                    location /moved/ { return 301 /fresh/a.txt; }
                    location /login/ {
                        add_header Set-Cookie "a=1; Path=/";
                        add_header Set-Cookie "b=2; Path=/; Expires=Wed, 01 Jan 2070 00:00:00 GMT";
                        return 302 /who/;
                    }
                    location /who/ { return 200 "$http_cookie"; }
                    location /secret/ { auth_basic "secret"; auth_basic_user_file users; }
                }
            """
        }
        try server.serve(Data("one".utf8), at: "/fresh/a.txt", modified: Date(timeIntervalSince1970: 1_700_000_000))
        try server.serve(Data("one".utf8), at: "/checked/a.txt", modified: Date(timeIntervalSince1970: 1_700_000_000))
        try server.serve(
            Data("for users".utf8), at: "/secret/a.txt", modified: Date(timeIntervalSince1970: 1_700_000_000))
        try server.serve(
            Data(repeating: UInt8(ascii: "a"), count: 100_000), at: "/gzip/a.txt",
            modified: Date(timeIntervalSince1970: 1_700_000_000))
        try Data("user:{PLAIN}pass\n".utf8).write(to: server.scratch.appending("users"))
        var client = HTTPClient.Configuration()
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(certificates.path("ca.pem"))
        client.tlsConfiguration = tls
        session = try cache.makeSession(configuration: .ephemeral.patient, client: client)
    }

    private func load(_ path: String, isByTLS: Bool) async throws -> (text: String, http: HTTPURLResponse) {
        let start = isByTLS ? "https://localhost:\(server.ports[1])" : "http://127.0.0.1:\(server.ports[0])"
        let (data, response) = try await session.data(from: try #require(URL(string: start + path)))
        return (String(decoding: data, as: UTF8.self), try #require(response as? HTTPURLResponse))
    }

    @Test(arguments: [true, false]) func answersAreStoredConfirmedAndDecoded(isByTLS: Bool) async throws {
        defer { session.invalidateAndCancel() }
        var requests: Set<String> = []
        for _ in 0..<3 {
            let fresh = try await load("/fresh/a.txt", isByTLS: isByTLS)
            #expect(fresh.text == "one")
            let version = fresh.http.value(forHTTPHeaderField: "X-Protocol")
            #expect(version == (isByTLS ? "HTTP/2.0" : "HTTP/1.1"))
            requests.insert(fresh.http.value(forHTTPHeaderField: "X-Request") ?? "")
        }
        #expect(requests.count == 1)
        let events = cache.events()
        for _ in 0..<2 { #expect(try await load("/checked/a.txt", isByTLS: isByTLS).text == "one") }
        let confirmed = await events.first("a 304") { event -> Bool? in
            guard case .load(let report) = event, case .revalidated = report.outcome else { return nil }
            return true
        }
        #expect(confirmed == true)
        for _ in 0..<2 {
            #expect(try await load("/gzip/a.txt", isByTLS: isByTLS).text == String(repeating: "a", count: 100_000))
        }
        let moved = try await load("/moved/", isByTLS: isByTLS)
        #expect(moved.text == "one" && moved.http.url?.path == "/fresh/a.txt")
        #expect(try await load("/none", isByTLS: isByTLS).http.statusCode == 404)
    }

    @Test(arguments: [true, false]) func eachCookieIsKeptAndSent(isByTLS: Bool) async throws {
        defer { session.invalidateAndCancel() }
        for path in ["/login/", "/who/"] {
            let text = try await load(path, isByTLS: isByTLS).text
            #expect(Set(text.components(separatedBy: "; ")) == ["a=1", "b=2"], "\(path)")
        }
    }

    @Test func aUserInTheURLIsLetIn() async throws {
        defer { session.invalidateAndCancel() }
        let url = try #require(URL(string: "http://user:pass@127.0.0.1:\(server.ports[0])/secret/a.txt"))
        let (data, _) = try await session.data(from: url)
        #expect(data == Data("for users".utf8))
    }
}
