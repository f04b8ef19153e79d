import Foundation

/// First loads over TLS: nginx with a certificate made for the run, in front of the same origin.
///
/// FoundationNetworking on Linux hands libcurl the system's bundle of certificates; `SSL_CERT_FILE`, `CURL_CA_BUNDLE`
/// and `URLSessionCertificateAuthorityInfoFile` change nothing. So the client runs in a mount namespace of its own, in
/// which that bundle is the run's certificate.
enum TLSRows {
    private static let bundle = "/etc/ssl/certs/ca-certificates.crt"

    static func run(_ report: Report, _ options: Options, _ scratch: Scratch) throws {
        let folder = scratch.folder("tls").path
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        guard let nginx = find("nginx"), let openssl = find("openssl"), let unshare = find("unshare") else {
            print("  skipped: needs nginx (nginx-light), openssl and unshare (util-linux)")
            return
        }
        let namespace = ["--map-root-user", "--mount"]
        guard (try? make(unshare, namespace + ["true"])) != nil else {
            print("  skipped: unshare may make no mount namespace here")
            return
        }
        let origin = try OriginProcess()
        try make(
            openssl,
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-keyout", "\(folder)/key.pem", "-out", "\(folder)/certificate.pem", "-subj", "/CN=localhost",
                "-addext", "subjectAltName=DNS:localhost",
            ])
        let port = try freePort()
        try configuration(folder, port: port, origin: origin.base)
            .write(toFile: "\(folder)/nginx.conf", atomically: true, encoding: .utf8)
        let server = Process()
        server.executableURL = URL(fileURLWithPath: nginx)
        server.arguments = ["-p", folder, "-c", "\(folder)/nginx.conf"]
        server.standardError = FileHandle.nullDevice
        try server.run()
        defer {
            server.terminate()
            server.waitUntilExit()
        }
        let mount = "mount --bind '\(folder)/certificate.pem' \(bundle) && exec \"$0\" \"$@\""
        let rows = try Child.value(
            [Row].self, of: ["tls", "https://localhost:\(port)", "\(options.rounds(100))", "\(folder)/client"],
            wrapper: [unshare] + namespace + ["/bin/sh", "-c", mount])
        rows.forEach(report.add)
    }

    static func child(_ arguments: [String]) throws {
        let scratch = try Scratch(in: arguments[2])
        try waitForServer(arguments[0])
        var rows: [Row] = []
        for size in [1 << 10, 16 << 10, 1 << 20] {
            rows += try FirstLoadRows.rows(
                .handler, size: size, base: arguments[0], rounds: Int(arguments[1])!, scratch, suffix: ", over TLS",
                target: nil)
        }
        try Child.print(rows)
    }

    private static func waitForServer(_ base: String) throws {
        let client = Client.stock()
        for attempt in 0..<100 {
            do {
                return try client.load([OriginProcess.request(base, .noStore, bytes: 1, 0)], expecting: 1)
            } catch  where attempt < 99 {
                usleep(50_000)
            }
        }
    }

    private static func configuration(_ folder: String, port: UInt16, origin: String) -> String {
        """
        daemon off; master_process off; pid \(folder)/pid; error_log \(folder)/errors;
        events {}
        http {
            access_log off; proxy_max_temp_file_size 0;
            proxy_temp_path \(folder)/proxy; client_body_temp_path \(folder)/body; fastcgi_temp_path \(folder)/fastcgi;
            scgi_temp_path \(folder)/scgi; uwsgi_temp_path \(folder)/uwsgi;
            upstream origin { server \(origin.dropFirst("http://".count)); keepalive 16; }
            server {
                listen 127.0.0.1:\(port) ssl; listen [::1]:\(port) ssl;
                ssl_certificate \(folder)/certificate.pem; ssl_certificate_key \(folder)/key.pem;
                location / { proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection ""; }
            }
        }
        """
    }

    private static func find(_ name: String) -> String? {
        ["/usr/sbin", "/usr/bin", "/sbin", "/bin"].map { "\($0)/\(name)" }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    private static func make(_ path: String, _ arguments: [String]) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Child.Failure(message: "\(path) ended with \(process.terminationStatus)")
        }
    }

    /// A port that the system just gave and took back.
    private static func freePort() throws -> UInt16 {
        let (listener, port) = try Origin.listen()
        close(listener)
        return port
    }
}
