import DiskURLCache
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif
#if canImport(Glibc)
    import Glibc
#endif

/// `Counts peak`: the largest memory of a process that loads a large body, above what it had before, with a cache and
/// without. The origin is this process, and each row is a child.
enum PeakMemory {
    static let megabytes = 400

    struct Row {
        /// `stock`, `not stored` or `stored`.
        let cache: String
        /// A delegate counts, takes its time, or there is a completion handler.
        let client: String
        let isCoded: Bool
        var name: String { "\(client), \(isCoded ? "gzip" : "plain"), \(cache)" }
    }

    static let rows = ["delegate", "slow delegate", "completion handler"].flatMap { client in
        [false, true].flatMap { isCoded in
            ["stock", "not stored", "stored"].map { Row(cache: $0, client: client, isCoded: isCoded) }
        }
    }

    static func measure() {
        let arguments = CommandLine.arguments
        if arguments.count == 7, arguments[2] == "child", let port = UInt16(arguments[6]) {
            return child(Row(cache: arguments[3], client: arguments[4], isCoded: arguments[5] == "gzip"), port: port)
        }
        let port = Origin.start()
        print("body of \(megabytes) MB\tpeak memory above the start, MB\tseconds")
        for row in rows {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            process.arguments = ["peak", "child", row.cache, row.client, row.isCoded ? "gzip" : "plain", "\(port)"]
            try? process.run()
            process.waitUntilExit()
        }
    }

    private static func child(_ row: Row, port: UInt16) {
        let folder = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent("peak-\(getpid())")
        defer { try? FileManager.default.removeItem(at: folder) }
        let counter = Counter(isSlow: row.client == "slow delegate")
        let configuration = URLSessionConfiguration.ephemeral
        let delegate = row.client == "completion handler" ? nil : counter
        let session: URLSession
        let cache = DiskURLCache(
            memoryCapacity: 16 << 20, diskCapacity: 2 << 30, directory: folder.appendingPathComponent("cache"))
        if row.cache == "stock" {
            configuration.urlCache = nil
            session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        } else {
            session = cache.makeSession(configuration: configuration, delegate: delegate)
        }
        let control = row.cache == "stored" ? "max-age=86400" : "no-store"
        func load(_ megabytes: Int) {
            let url = URL(string: "http://127.0.0.1:\(port)/\(megabytes)/\(control)/\(row.isCoded ? "gzip" : "plain")")!
            if delegate == nil {
                session.dataTask(with: url) { data, _, _ in counter.end(data?.count ?? 0) }.resume()
            } else {
                session.dataTask(with: url).resume()
            }
            counter.hasEnded.wait()
        }
        load(1)
        cache.flush()
        let start = status("VmHWM")
        let began = Date()
        load(megabytes)
        let seconds = Date().timeIntervalSince(began)
        let peak = status("VmHWM") - start
        guard counter.bytes == (megabytes + 1) << 20 else { return print("\(row.name): \(counter.bytes) bytes") }
        print("\(row.name)\t\(peak)\t\(String(format: "%.2f", seconds))")
    }

    private static func status(_ name: String) -> Int {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") } ?? ""
        return (line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0) >> 10
    }

    /// `@unchecked Sendable`: called on one serial queue, and read after the end.
    private final class Counter: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        var bytes = 0
        let isSlow: Bool
        let hasEnded = DispatchSemaphore(value: 0)

        init(isSlow: Bool) { self.isSlow = isSlow }

        func end(_ count: Int) {
            bytes += count
            hasEnded.signal()
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            bytes += data.count
            // 4 MB in 10 ms.
            if isSlow { usleep(UInt32(data.count / 420)) }
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            hasEnded.signal()
        }
    }

    /// Answers `/MEGABYTES/CACHE-CONTROL/plain` or `/gzip` with so many zeros.
    private enum Origin {
        static func start() -> UInt16 {
            signal(SIGPIPE, SIG_IGN)
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    _ = bind(listener, $0, length)
                    _ = listen(listener, 16)
                    _ = getsockname(listener, $0, &length)
                }
            }
            Thread.detachNewThread {
                while true {
                    let connection = accept(listener, nil, nil)
                    Thread.detachNewThread { serve(connection) }
                }
            }
            return UInt16(bigEndian: address.sin_port)
        }

        private static func serve(_ connection: Int32) {
            defer { close(connection) }
            let zeros = [UInt8](repeating: 0, count: 1 << 20)
            var buffer = [UInt8](repeating: 0, count: 8 << 10)
            while true {
                let count = read(connection, &buffer, buffer.count)
                guard count > 0 else { return }
                let path = String(decoding: buffer[..<count], as: UTF8.self).split(separator: " ")[1]
                let parts = path.split(separator: "/")
                let megabytes = Int(parts[0]) ?? 0
                let coded = parts[2] == "gzip" ? gzip(megabytes) : nil
                var head = "HTTP/1.1 200 OK\r\nCache-Control: \(parts[1])\r\nContent-Type: application/octet-stream\r\n"
                if coded != nil { head += "Content-Encoding: gzip\r\n" }
                head += "Content-Length: \(coded?.count ?? megabytes << 20)\r\n\r\n"
                guard send(Array(head.utf8), to: connection) else { return }
                if let coded {
                    guard send(coded, to: connection) else { return }
                } else {
                    for _ in 0..<megabytes { guard send(zeros, to: connection) else { return } }
                }
            }
        }

        private static func gzip(_ megabytes: Int) -> [UInt8] {
            let process = Process()
            let output = Pipe()
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = ["-c", "head -c \(megabytes << 20) /dev/zero | gzip -1"]
            process.standardOutput = output
            try? process.run()
            defer { process.waitUntilExit() }
            return [UInt8](output.fileHandleForReading.readDataToEndOfFile())
        }

        private static func send(_ bytes: [UInt8], to connection: Int32) -> Bool {
            var done = 0
            while done < bytes.count {
                let count = bytes.withUnsafeBytes { write(connection, $0.baseAddress! + done, bytes.count - done) }
                guard count > 0 else { return false }
                done += count
            }
            return true
        }
    }
}
