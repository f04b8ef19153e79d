import Foundation

/// An HTTP/1.1 server on loopback. It runs in its own process, so that its work is not attributed to any side.
///
/// The URL says how it answers: `/KIND/item-N.json?bytes=COUNT&delay=MILLISECONDS`, where the kind is one of `Kind`.
final class Origin: Sendable {
    enum Kind: String, CaseIterable {
        /// Fresh for a day.
        case stored
        case noStore = "no-store"
        /// To be revalidated each time; answered by 304 where the request has an `If-None-Match`.
        case revalidated
    }

    private let listener: Int32
    private let port: UInt16
    private let heads: [String: String]
    /// The block of which bodies are made, repeated.
    private let block = [UInt8](Content.body(1 << 20))

    private init() throws {
        (listener, port) = try Self.listen()
        let cacheControls: [Kind: String] = [
            .stored: "public, max-age=86400", .noStore: "no-store", .revalidated: "no-cache",
        ]
        heads = Dictionary(
            uniqueKeysWithValues: cacheControls.map { kind, cacheControl in
                let fields = Content.headers(cacheControl: cacheControl).sorted { $0.key < $1.key }
                return (kind.rawValue, fields.map { "\($0.key): \($0.value)\r\n" }.joined())
            })
    }

    /// Prints the port and serves until standard input ends, as it does when the process that started it is gone.
    static func serve() throws {
        let origin = try Origin()
        print(origin.port)
        fflush(nil)
        Thread.detachNewThread { origin.acceptAll() }
        while let line = readLine() { consume(line) }
    }

    static func listen() throws -> (listener: Int32, port: UInt16) {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && Foundation.listen(listener, 512) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        guard isListening else { throw RawFiles.Failure(call: "listen", errno: errno) }
        return (listener, UInt16(bigEndian: address.sin_port))
    }

    private func acceptAll() {
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { return }
            var on: Int32 = 1
            setsockopt(connection, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
            Thread.detachNewThread { [self] in
                answerAll(connection)
                close(connection)
            }
        }
    }

    private func answerAll(_ descriptor: Int32) {
        var connection = Connection(descriptor: descriptor)
        while let request = connection.receive() {
            let query = URLComponents(string: request.target)?.queryItems ?? []
            func number(_ name: String) -> Int { query.first { $0.name == name }?.value.flatMap { Int($0) } ?? 0 }
            let kind = request.target.split(separator: "/").first.map(String.init) ?? ""
            if number("delay") > 0 { usleep(UInt32(number("delay")) * 1_000) }
            let isConfirmed = kind == Kind.revalidated.rawValue && request.fields["if-none-match"] != nil
            let count = number("bytes")
            let status = isConfirmed ? "304 Not Modified" : "200 OK\r\nContent-Length: \(count)"
            let head = Array("HTTP/1.1 \(status)\r\n\(heads[kind] ?? "")\r\n".utf8)
            guard connection.send(head, body: isConfirmed ? 0 : count, of: block) else { return }
        }
    }

    private struct Connection {
        let descriptor: Int32
        private var received: [UInt8] = []
        private var buffer = [UInt8](repeating: 0, count: 256 << 10)

        init(descriptor: Int32) {
            self.descriptor = descriptor
        }

        /// The next request, after its body has been received too.
        mutating func receive() -> (target: String, fields: [Substring: String])? {
            while true {
                if let end = received.firstRange(of: Array("\r\n\r\n".utf8)) {
                    let lines = String(decoding: received[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
                    received.removeSubrange(..<end.upperBound)
                    var fields: [Substring: String] = [:]
                    for line in lines.dropFirst() {
                        let parts = line.lowercased().split(separator: ":", maxSplits: 1)
                        if parts.count == 2 { fields[parts[0]] = parts[1].trimmingCharacters(in: .whitespaces) }
                    }
                    if fields["expect"] == "100-continue" {
                        guard send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8), body: 0, of: []) else { return nil }
                    }
                    guard skip(fields["content-length"].flatMap { Int($0) } ?? 0) else { return nil }
                    let target = lines.first?.split(separator: " ").dropFirst().first ?? ""
                    return (String(target), fields)
                }
                guard fill() else { return nil }
            }
        }

        private mutating func fill() -> Bool {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            guard count > 0 else { return false }
            received += buffer[..<count]
            return true
        }

        private mutating func skip(_ count: Int) -> Bool {
            var left = count
            while left > received.count {
                left -= received.count
                received.removeAll(keepingCapacity: true)
                guard fill() else { return false }
            }
            received.removeFirst(left)
            return true
        }

        /// The head and the first part of the body leave in one call.
        func send(_ head: [UInt8], body count: Int, of block: [UInt8]) -> Bool {
            let first = min(count, block.count)
            guard sendAll(head + block[..<first]) else { return false }
            var left = count - first
            while left > 0 {
                let part = min(left, block.count)
                guard block.withUnsafeBytes({ sendAll($0, part) }) else { return false }
                left -= part
            }
            return true
        }

        private func sendAll(_ bytes: [UInt8]) -> Bool {
            bytes.withUnsafeBytes { sendAll($0, $0.count) }
        }

        private func sendAll(_ bytes: UnsafeRawBufferPointer, _ count: Int) -> Bool {
            var done = 0
            while done < count {
                let sent = Foundation.send(descriptor, bytes.baseAddress! + done, count - done, Int32(MSG_NOSIGNAL))
                guard sent > 0 else { return false }
                done += sent
            }
            return true
        }
    }
}
