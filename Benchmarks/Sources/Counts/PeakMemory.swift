import DiskURLCache
import DiskURLCacheAdapters
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
    struct Row {
        /// `stock`, `not stored`, `stored` or `hit`.
        let cache: String
        /// A delegate counts, takes its time, or there is a completion handler; or a direct call.
        let client: String
        let isCoded: Bool
        var name: String { "\(client), \(isCoded ? "gzip" : "plain"), \(cache)" }
        var isDirect: Bool { client.contains("for:") || client.contains("through:") }
        var megabytes: Int { isDirect ? 1_024 : 400 }
    }

    static let rows =
        ["delegate", "slow delegate", "completion handler"].flatMap { client in
            [false, true].flatMap { isCoded in
                ["stock", "not stored", "stored"].map { Row(cache: $0, client: client, isCoded: isCoded) }
            }
        }
        + ["bytes(for:)", "file(for:at:)", "load(_:through:), write(to:)"].flatMap { client in
            ["not stored", "stored", "hit"].map { Row(cache: $0, client: client, isCoded: false) }
        }

    static func measure() {
        let arguments = CommandLine.arguments
        if arguments.count == 7, arguments[2] == "child", let port = UInt16(arguments[6]) {
            return child(Row(cache: arguments[3], client: arguments[4], isCoded: arguments[5] == "gzip"), port: port)
        }
        let port = Origin.start()
        print("body of 400 MB, direct calls 1,024 MB\tpeak memory above the start, MB\tseconds")
        // `Counts peak bytes`: only the rows whose name begins so.
        let beginning = arguments.count == 3 ? arguments[2] : ""
        for row in rows where row.name.hasPrefix(beginning) {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            process.arguments = ["peak", "child", row.cache, row.client, row.isCoded ? "gzip" : "plain", "\(port)"]
            try? process.run()
            process.waitUntilExit()
        }
    }

    private static func child(_ row: Row, port: UInt16) {
        let folder = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent("peak-\(getpid())")
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let counter = Counter(isSlow: row.client == "slow delegate")
        let configuration = URLSessionConfiguration.ephemeral
        let delegate = row.client == "completion handler" ? nil : counter
        let session: URLSession
        let cache = DiskURLCache(
            memoryCapacity: 16 << 20, diskCapacity: row.isDirect ? 12 << 30 : 2 << 30,
            directory: folder.appendingPathComponent("cache"))
        if row.cache == "stock" {
            configuration.urlCache = nil
            session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        } else {
            session = cache.makeSession(configuration: configuration, delegate: delegate)
        }
        let control = ["stored", "hit"].contains(row.cache) ? "max-age=86400" : "no-store"
        func load(_ megabytes: Int) {
            // A session on Linux cannot be paused: what the disk has not taken yet is in memory, and the loopback
            // interface is faster than most disks.
            let rate = row.isDirect ? "/\(gigabitEthernet)" : ""
            let coding = row.isCoded ? "gzip" : "plain"
            let url = URL(string: "http://127.0.0.1:\(port)/\(megabytes)/\(control)/\(coding)\(rate)")!
            if row.isDirect {
                direct(row.client, cache, url, folder.appendingPathComponent("file"), counter)
            } else if delegate == nil {
                session.dataTask(with: url) { data, _, _ in counter.end(data?.count ?? 0) }.resume()
            } else {
                session.dataTask(with: url).resume()
            }
            counter.hasEnded.wait()
        }
        load(1)
        if row.cache == "hit" {
            load(row.megabytes)
            // The peak of the first load does not count.
            try? Data("5".utf8).write(to: URL(fileURLWithPath: "/proc/self/clear_refs"))
        }
        counter.bytes = 0
        cache.flush()
        let start = status("VmHWM")
        let began = Date()
        load(row.megabytes)
        let seconds = Date().timeIntervalSince(began)
        let peak = status("VmHWM") - start
        guard counter.bytes == row.megabytes << 20 else { return print("\(row.name): \(counter.bytes) bytes") }
        print("\(row.name)\t\(peak)\t\(String(format: "%.2f", seconds))")
    }

    /// MB in a second.
    private static let gigabitEthernet = 125

    /// A transport that can be paused, faster than any network.
    private struct Zeros: DiskURLCache.Transport {
        let megabytes: Int
        let control: String

        func send(_ request: DiskURLCache.Request, to receiver: DiskURLCache.Receiver) async throws {
            receiver.receive(DiskURLCache.Head(status: 200, fields: [("Cache-Control", control)]))
            for _ in 0..<megabytes * 16 { await receiver.receive(Data(count: 64 << 10)) }
        }
    }

    /// A direct call, for which the thread waits.
    private static func direct(_ call: String, _ cache: DiskURLCache, _ url: URL, _ file: URL, _ counter: Counter) {
        Task {
            do {
                if call == "bytes(for:)" {
                    for try await piece in try await cache.bytes(for: URLRequest(url: url)) {
                        counter.bytes += piece.count
                    }
                } else {
                    if call == "file(for:at:)" {
                        try await cache.file(for: URLRequest(url: url), at: file)
                    } else {
                        let parts = url.pathComponents
                        let zeros = Zeros(megabytes: Int(parts[1]) ?? 0, control: parts[2])
                        try await cache.load(URLRequest(url: url), through: zeros).write(to: file)
                    }
                    counter.bytes += try FileManager.default.attributesOfItem(atPath: file.path)[.size] as? Int ?? 0
                    try FileManager.default.removeItem(at: file)
                }
            } catch {
                print("\(call): \(error)")
            }
            counter.end(0)
        }
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

    /// Answers `/MEGABYTES/CACHE-CONTROL/plain` or `/gzip` with so many zeros; `/plain/RATE` at most so many MB in a
    /// second.
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
                    let rate = parts.count > 3 ? Double(parts[3]) : nil
                    let began = Date()
                    for sent in 0..<megabytes {
                        if let rate {
                            let ahead = Double(sent) / rate - Date().timeIntervalSince(began)
                            if ahead > 0 { Thread.sleep(forTimeInterval: ahead) }
                        }
                        guard send(zeros, to: connection) else { return }
                    }
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
