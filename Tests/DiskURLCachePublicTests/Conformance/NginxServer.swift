// iPhones run no other programs.
#if os(macOS) || os(Linux)
    import Foundation
    import Testing

    /// nginx as a child process, with a configuration, ports and a folder of its own.
    ///
    /// `@unchecked Sendable`: everything is constant, and `Process` is used by `init` and `deinit` only.
    final class NginxServer: @unchecked Sendable {
        /// Nil where nginx is not installed.
        static let path = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/bin/nginx", "/opt/homebrew/bin/nginx"]
            .first { FileManager.default.isExecutableFile(atPath: $0) }

        private static let attempts = 10

        let ports: [UInt16]
        var port: UInt16 { ports[0] }
        let scratch: ScratchDirectory
        private let process: Process

        /// The servers that the public rows are played against.
        convenience init() throws {
            try self.init(ports: 1) { Self.answers(at: $0[0]) }
        }

        /// - Parameter servers: what the configuration has between the braces of `http`, for so many free ports. Paths
        ///   in it are those of `scratch`, which `prepare` fills.
        init(
            ports count: Int, prepare: (ScratchDirectory) throws -> Void = { _ in }, servers: ([UInt16]) -> String
        ) throws {
            scratch = try ScratchDirectory("nginx")
            try FileManager.default.createDirectory(
                at: scratch.appending("html"), withIntermediateDirectories: true)
            try prepare(scratch)
            for _ in 1..<Self.attempts {
                // All at once, so that they differ; nginx takes them as soon as they are closed.
                let listeners = try (0..<count).map { _ in try LoopbackListener() }
                let ports = listeners.map(\.port)
                for listener in listeners {
                    listener.wake()
                    listener.close()
                }
                if let process = try Self.start(in: scratch.url, Self.configuration(servers(ports))) {
                    self.ports = ports
                    self.process = process
                    return
                }
            }
            throw CocoaError(.fileReadUnknown, userInfo: [NSDebugDescriptionErrorKey: "nginx found no free port"])
        }

        deinit {
            // The child inherits a signal mask in which SIGTERM is blocked, and has nothing to save. Nobody waits for
            // its end: Foundation hears of that by a pipe which children that were started at the same time may hold
            // open, too, so two servers could wait for each other.
            kill(process.processIdentifier, SIGKILL)
        }

        func url(_ path: String) -> URL {
            URL(string: "http://127.0.0.1:\(port)\(path)") ?? scratch.url
        }

        /// Puts a file where nginx serves it, by a path such as `/fresh/a.txt`.
        func serve(_ data: Data, at path: String, modified: Date) throws {
            let file = scratch.appending("html\(path)")
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try data.write(to: file)
            try FileManager.default.setAttributes([.modificationDate: modified], ofItemAtPath: file.path)
        }

        func remove(_ path: String) throws {
            try FileManager.default.removeItem(at: scratch.appending("html\(path)"))
        }

        /// Nil when a port was taken in the meantime.
        private static func start(in folder: URL, _ configuration: String) throws -> Process? {
            let file = folder.appendingPathComponent("nginx.conf")
            try Data(configuration.utf8).write(to: file)
            let process = Process()
            process.executableURL = URL(fileURLWithPath: path ?? "")
            process.arguments = ["-p", folder.path, "-e", "stderr", "-c", file.path]
            let log = Pipe()
            process.standardError = log
            process.standardOutput = FileHandle.nullDevice
            process.standardInput = FileHandle.nullDevice
            try process.run()
            // nginx tells its version once it listens, and ends when it cannot.
            var text = ""
            while !text.contains("nginx/") {
                let data = log.fileHandleForReading.availableData
                if data.isEmpty {
                    process.waitUntilExit(of: "nginx")
                    return nil
                }
                text += String(decoding: data, as: UTF8.self)
            }
            return process
        }

        private static func configuration(_ servers: String) -> String {
            """
            daemon off;
            master_process off;
            pid nginx.pid;
            error_log stderr notice;
            events { worker_connections 64; }
            http {
                access_log off;
                client_body_temp_path temp-body;
                proxy_temp_path temp-proxy;
                fastcgi_temp_path temp-fastcgi;
                uwsgi_temp_path temp-uwsgi;
                scgi_temp_path temp-scgi;
                types { text/plain txt; application/json json; }
                etag on;
            \(servers)
            }
            """
        }

        /// `X-Request` differs for each request that nginx answers, and `X-Status` tells how it did: what the cache
        /// answers by itself repeats both.
        private static func answers(at port: UInt16) -> String {
            """
                gzip_types text/plain;
                add_header X-Request $request_id always;
                add_header X-Status $status always;
                server {
                    listen 127.0.0.1:\(port);
                    root html;
                    location /fresh/ { expires 1h; }
                    location /checked/ { expires -1; }
                    location /expired/ { expires epoch; }
                    location /gzip/ { expires 1h; gzip on; gzip_vary on; gzip_min_length 0; }
                    location /gzip-checked/ { expires -1; gzip on; gzip_vary on; gzip_min_length 0; }
                    location /moved/ { return 301 /fresh/target.txt; }
                }
            """
        }
    }
#endif
