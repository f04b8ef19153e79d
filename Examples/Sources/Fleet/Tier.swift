import ExampleSupport
import FlyingSocks
import Foundation

/// The programs that can be the shared tier.
enum TierKind: String, CaseIterable {
    case varnish
    case nginx

    /// Nil if it is not installed.
    var path: String? {
        let name = self == .varnish ? "varnishd" : "nginx"
        return [
            "/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/sbin", "/opt/homebrew/bin",
        ]
        .map { $0 + "/" + name }
        .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// nginx without modules cannot remove one response.
    var canPurge: Bool { self == .varnish }

    /// Writes its configuration to a folder. Returns the arguments that start it in the foreground.
    func prepare(_ folder: URL, port: Int, originPort: Int) throws -> [String] {
        let file = folder.appendingPathComponent("configuration")
        switch self {
        case .varnish:
            try Data(Self.varnishConfiguration(originPort).utf8).write(to: file)
            return [
                "-F", "-j", "none", "-n", folder.appendingPathComponent("varnish").path, "-a", "127.0.0.1:\(port)",
                "-f", file.path, "-s", "malloc,64m",
                // By default Varnish serves a stale response for ten more seconds.
                "-p", "default_grace=0",
            ]
        case .nginx:
            try Data(Self.nginxConfiguration(port, originPort).utf8).write(to: file)
            return ["-p", folder.path, "-e", "stderr", "-c", file.path]
        }
    }

    private static func varnishConfiguration(_ originPort: Int) -> String {
        """
        vcl 4.1;

        backend origin { .host = "127.0.0.1"; .port = "\(originPort)"; }

        sub vcl_recv {
            # If other programs can send requests, let an `acl` say which of them may do this.
            if (req.method == "PURGE") { return (purge); }
        }

        sub vcl_backend_response {
            # An origin that says max-age=0 wants the processes to ask each time. What the tier may do is said here.
            if (bereq.url ~ "^/stock/") { set beresp.ttl = 10m; }
        }

        sub vcl_deliver {
            # RFC 9111, section 4.4. Varnish does not do it by itself. For /untold/ it is left out, to see what happens then.
            if (req.method ~ "^(PUT|POST|PATCH|DELETE)$" && resp.status < 400 && req.url !~ "^/untold/") {
                ban("req.url == " + req.url);
            }
        }
        """
    }

    private static func nginxConfiguration(_ port: Int, _ originPort: Int) -> String {
        """
        daemon off;
        master_process off;
        pid nginx.pid;
        error_log stderr;
        events { worker_connections 256; }
        http {
            access_log off;
            client_body_temp_path temp-body;
            proxy_temp_path temp-proxy;
            fastcgi_temp_path temp-fastcgi;
            uwsgi_temp_path temp-uwsgi;
            scgi_temp_path temp-scgi;
            proxy_cache_path stored keys_zone=fleet:8m;
            upstream origin { server 127.0.0.1:\(originPort); keepalive 32; }
            server {
                listen 127.0.0.1:\(port);
                proxy_http_version 1.1;
                proxy_set_header Connection "";
                proxy_cache fleet;
                # One request at the origin for many that wait.
                proxy_cache_lock on;
                # nginx sends no Age. With the origin's Date a cache behind it can tell how old an answer is.
                proxy_pass_header Date;
                location / { proxy_pass http://origin; }
                # An origin that says max-age=0 wants the processes to ask each time. What the tier may do is said here.
                location /stock/ {
                    proxy_pass http://origin;
                    proxy_ignore_headers Cache-Control;
                    proxy_cache_valid 200 10m;
                }
            }
        }
        """
    }
}

enum KeeperOrder: Codable, Sendable {
    case start
    /// Like a crash: nothing is closed in order.
    case kill
}

/// Starts and kills the tier. It is a separate process, and runs after this program has ended until the tier is killed
/// and the folder removed: after a failure, after Control-C, and after `kill -9`, too.
///
/// `@unchecked Sendable`: `process` is used under the lock only. It is held until the tier runs, or has ended: this
/// process may end in the middle of a start, and must know the process to kill.
final class KeeperProcess: @unchecked Sendable {
    private let kind: TierKind
    private let port: Int
    private let originPort: Int
    private let folder: URL
    private let lock = NSLock()
    private var process: Process?

    private init(_ kind: TierKind, port: Int, originPort: Int, folder: URL) {
        self.kind = kind
        self.port = port
        self.originPort = originPort
        self.folder = folder
    }

    static func run(_ arguments: [String]) async throws {
        guard arguments.count == 4, let kind = TierKind(rawValue: arguments[0]), let port = Int(arguments[1]),
            let originPort = Int(arguments[2])
        else { throw Failure("not started by hand") }
        // Control-C reaches the whole group. This process has work to do then.
        for number in [SIGINT, SIGTERM, SIGHUP] { signal(number, SIG_IGN) }
        let folder = URL(fileURLWithPath: arguments[3], isDirectory: true)
        let keeper = KeeperProcess(kind, port: port, originPort: originPort, folder: folder)
        let orders = Orders.stream(of: KeeperOrder.self) {
            // Not given back: no process starts any more.
            keeper.lock.lock()
            keeper.kill()
            RunningMark.waitForOthers(in: folder)
            // Varnish's second process may still write there.
            while FileManager.default.fileExists(atPath: folder.path) {
                try? FileManager.default.removeItem(at: folder)
            }
        }
        for await order in orders {
            switch order {
            case .start: try Orders.reply(keeper.lock.withLock { keeper.start() })
            case .kill:
                keeper.lock.withLock { keeper.kill() }
                try Orders.reply(true)
            }
        }
    }

    /// Whether it takes connections now.
    private func start() -> Bool {
        let process = Process()
        do {
            let folder = folder.appendingPathComponent("tier-\(UUID().uuidString.prefix(8))", isDirectory: true)
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            process.arguments = try kind.prepare(folder, port: port, originPort: originPort)
            let log = folder.appendingPathComponent("log")
            try Data().write(to: log)
            let handle = try FileHandle(forWritingTo: log)
            process.executableURL = URL(fileURLWithPath: kind.path ?? "")
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = handle
            process.standardError = handle
            try process.run()
            self.process = process
            let deadline = Date(timeIntervalSinceNow: 20)
            while process.isRunning, Date() < deadline {
                if isReachable(port) { return true }
                Thread.sleep(forTimeInterval: 0.02)
            }
            complain("The tier did not start:\n\((try? String(contentsOf: log, encoding: .utf8)) ?? "")")
        } catch {
            complain("The tier did not start: \(error)")
        }
        return false
    }

    /// Returns when no process takes connections any more.
    private func kill() {
        guard let process else { return }
        self.process = nil
        // Varnish has a second process, which ends when the first is gone.
        end(process.processIdentifier)
        process.waitUntilExit()
        while isReachable(port) { Thread.sleep(forTimeInterval: 0.01) }
    }
}

private func end(_ process: Int32) { _ = kill(process, SIGKILL) }

private func isReachable(_ port: Int) -> Bool {
    guard let socket = try? Socket(domain: AF_INET),
        let address = try? sockaddr_in.inet(ip4: "127.0.0.1", port: UInt16(port))
    else { return false }
    defer { try? socket.close() }
    return (try? socket.connect(to: address)) != nil
}

/// A free port.
func freePort() throws -> Int {
    let socket = try Socket(domain: AF_INET)
    defer { try? socket.close() }
    try socket.bind(to: sockaddr_in.inet(ip4: "127.0.0.1", port: 0))
    guard case .ip4(_, let port) = try socket.sockname() else { throw Failure("there is no free port") }
    return Int(port)
}
