#if os(Linux)
    import DiskURLCache
    import Foundation
    import Testing
    import FoundationNetworking

    /// Loads over TLS from nginx, by HTTP/2 where libcurl speaks it: trust, redirects from http to https, lower-case
    /// fields. Each is compared with a session without a cache. They run in a process of their own, which has its own
    /// list of trusted certificates: Foundation on Linux trusts the system's list only.
    @Suite(.fewAtATime, .enabled(if: TLSNginx.canRun, "needs nginx and openssl"))
    struct HTTPSTests {
        @Test(.enabled(if: TLSNginx.canTrust, "needs root, unshare and the system's list of certificates"))
        func httpsIsCachedAsHTTP() throws {
            let (server, lines) = try run(trusting: true)
            defer { withExtendedLifetime(server) {} }
            #expect(lines.contains("plain 200 one"), "\(lines)")
            let protocols = lines.filter { $0.hasPrefix("protocol") }
            // With and without a cache, and stored. Foundation leaves it to libcurl, which asks for HTTP/2 where it was
            // built with it.
            #expect(Set(protocols) == [Self.speaksHTTP2 ? "protocol HTTP/2.0" : "protocol HTTP/1.1"], "\(lines)")
            #expect(
                lines.filter { !$0.hasPrefix("protocol") } == [
                    "plain 200 one", "first 200 one", "second 200 one, from the cache", "etag",
                    "disk 200 one, from the cache",
                    "redirect 200 one https", "redirect again 200 one https",
                ])
        }

        @Test func anUntrustedServerFailsAndNothingIsStored() throws {
            let (server, lines) = try run(trusting: false)
            defer { withExtendedLifetime(server) {} }
            let error = try #require(lines.first?.dropFirst("plain ".count))
            #expect(error.hasPrefix("NSURLErrorDomain"), "\(lines)")
            #expect(
                lines == [
                    "plain \(error)", "first \(error)", "second \(error)", "disk \(error)", "redirect \(error)",
                    "redirect again \(error)", "nothing stored",
                ])
        }

        /// Of the libcurl that Foundation has loaded.
        private static let speaksHTTP2: Bool = {
            typealias Version = @convention(c) () -> UnsafePointer<CChar>
            guard let symbol = dlsym(nil, "curl_version") else { return false }
            return String(cString: unsafeBitCast(symbol, to: Version.self)()).contains("nghttp2")
        }()

        private func run(trusting: Bool) throws -> (TLSNginx, [String]) {
            let server = try TLSNginx()
            let scratch = try ScratchDirectory("https")
            let child = try ChildProcess(
                "https", directory: scratch.appending("cache").path,
                ["HTTPS": "\(server.tlsPort)", "HTTP": "\(server.port)"],
                under: trusting ? TLSNginx.trusting(server.authority) : [])
            let lines = child.remainingLines()
            #expect(child.succeeded)
            return (server, lines)
        }

        static func runInChild(_ directory: String) throws {
            let cache = DiskURLCache(
                memoryCapacity: 8 << 20, diskCapacity: 64 << 20, directory: URL(fileURLWithPath: directory))
            let cached = cache.makeSession(configuration: .ephemeral)
            let plain = URLSession(configuration: .ephemeral)
            let secure = try #require(
                URL(string: "https://localhost:\(ChildProcess.argument("HTTPS") ?? "")/fresh/a.txt"))
            let open = try #require(URL(string: "http://localhost:\(ChildProcess.argument("HTTP") ?? "")/moved/a.txt"))
            let first = load(secure, plain, "plain")
            let second = load(secure, cached, "first")
            let third = load(secure, cached, "second")
            for response in [first, second, third] {
                if let response {
                    ChildProcess.say("protocol \(response.value(forHTTPHeaderField: "X-Protocol") ?? "")")
                }
            }
            // HTTP/2 sends names in lower case, and the store finds them by any.
            if let third, third.value(forHTTPHeaderField: "ETag") != nil, third.value(forHTTPHeaderField: "etag") != nil
            {
                ChildProcess.say("etag")
            }
            cache.flush()
            cache.removeAllCachedResponses(from: .memory)
            load(secure, cached, "disk")
            load(open, cached, "redirect", saysScheme: true)
            load(open, cached, "redirect again", saysScheme: true)
            if first == nil, !cache.contains(URLRequest(url: secure)) { ChildProcess.say("nothing stored") }
        }

        @discardableResult
        private static func load(_ url: URL, _ session: URLSession, _ name: String, saysScheme: Bool = false)
            -> HTTPURLResponse?
        {
            let result = Guarded<(String, HTTPURLResponse?)>(("", nil))
            let ended = DispatchSemaphore(value: 0)
            session.dataTask(with: url) { data, response, error in
                let http = response as? HTTPURLResponse
                var text = "\(http?.statusCode ?? 0) \(String(decoding: data ?? Data(), as: UTF8.self))"
                if let error { text = "\((error as NSError).domain) \((error as NSError).code)" }
                if http?.value(forHTTPHeaderField: "Age") != nil, !saysScheme { text += ", from the cache" }
                if saysScheme, let scheme = http?.url?.scheme { text += " \(scheme)" }
                result.withLock { $0 = (text, http) }
                ended.signal()
            }.resume()
            ended.isSignalled("the load \(name)")
            let (text, http) = result.withLock { $0 }
            ChildProcess.say("\(name) \(text)")
            return http
        }
    }

    /// nginx with a certificate of its own for `localhost`, by HTTP/2 where the client asks for it, and a plain port
    /// that redirects to it.
    final class TLSNginx {
        static let canRun = NginxServer.path != nil && FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl")

        private static let trusted = "/etc/ssl/certs/ca-certificates.crt"

        /// Runs a command that sees `authority` in place of the system's list, which stays as it is for all others.
        static func trusting(_ authority: String) -> [String] {
            let script = "mount --bind \"$0\" \(trusted) && exec \"$@\""
            return ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", script, authority]
        }

        static let canTrust: Bool = {
            guard getuid() == 0, FileManager.default.fileExists(atPath: trusted) else { return false }
            let process = Process()
            let command = trusting(trusted) + ["/bin/true"]
            process.executableURL = URL(fileURLWithPath: command[0])
            process.arguments = Array(command.dropFirst())
            process.standardError = FileHandle.nullDevice
            guard (try? process.run()) != nil else { return false }
            process.waitUntilExit(of: "openssl")
            return process.terminationStatus == 0
        }()

        let server: NginxServer
        var port: UInt16 { server.ports[0] }
        var tlsPort: UInt16 { server.ports[1] }

        /// The file of the authority that signed the certificate.
        var authority: String { server.scratch.appending("ca.pem").path }

        init() throws {
            server = try NginxServer(
                ports: 2,
                prepare: { scratch in
                    let fresh = scratch.appending("html/fresh")
                    try FileManager.default.createDirectory(at: fresh, withIntermediateDirectories: true)
                    try Data("one".utf8).write(to: fresh.appendingPathComponent("a.txt"))
                    try Self.makeCertificates(in: scratch.url)
                },
                servers: { ports in
                    """
                        add_header X-Protocol $server_protocol always;
                        server {
                            listen 127.0.0.1:\(ports[1]) ssl http2;
                            ssl_certificate server.pem;
                            ssl_certificate_key server.key;
                            root html;
                            location /fresh/ { expires 1h; }
                        }
                        server {
                            listen 127.0.0.1:\(ports[0]);
                            location /moved/ { return 301 https://localhost:\(ports[1])/fresh/a.txt; }
                        }
                    """
                })
        }

        private static func makeCertificates(in folder: URL) throws {
            try Data("subjectAltName=DNS:localhost\n".utf8).write(to: folder.appendingPathComponent("names"))
            let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
            for arguments in [
                ["req", "-x509", "-subj", "/CN=Test", "-days", "3650", "-keyout", "ca.key", "-out", "ca.pem"] + key,
                ["req", "-new", "-subj", "/CN=localhost", "-keyout", "server.key", "-out", "server.csr"] + key,
                [
                    "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-set_serial", "1",
                    "-days", "3650",
                    "-extfile", "names", "-out", "server.pem",
                ],
            ] {
                let process = Process()
                process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
                process.arguments = arguments
                process.currentDirectoryURL = folder
                process.standardError = FileHandle.nullDevice
                process.standardOutput = FileHandle.nullDevice
                try process.run()
                process.waitUntilExit(of: "openssl")
                try #require(process.terminationStatus == 0)
            }
        }
    }
#endif
