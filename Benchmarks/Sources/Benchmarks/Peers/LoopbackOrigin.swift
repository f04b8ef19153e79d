import Foundation

/// An HTTP/1.1 server on loopback that answers every request with the same bytes: the network at its fastest.
final class LoopbackOrigin: @unchecked Sendable {
    // @unchecked: all properties are constant after `init`.
    let port: UInt16
    private let listener: Int32
    private let response: Data

    init(body: Data) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isListening = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && listen(listener, 128) == 0
                    && getsockname(listener, address, &length) == 0
            }
        }
        guard isListening else { throw RawFiles.Failure(call: "listen", errno: errno) }
        port = UInt16(bigEndian: address.sin_port)
        var head = "HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\n"
        for (name, value) in Content.headers.sorted(by: { $0.key < $1.key }) where name != "Date" {
            head += "\(name): \(value)\r\n"
        }
        response = Data((head + "\r\n").utf8) + body
        Thread.detachNewThread { [self] in acceptAll() }
    }

    var url: URL { URL(string: "http://127.0.0.1:\(port)/")! }

    func close() {
        shutdown(listener, Int32(SHUT_RDWR))
        Foundation.close(listener)
    }

    private func acceptAll() {
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { return }
            var on: Int32 = 1
            setsockopt(connection, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
            Thread.detachNewThread { [self] in serve(connection) }
        }
    }

    /// Requests have no bodies here, so each ends with its empty line.
    private func serve(_ connection: Int32) {
        defer { Foundation.close(connection) }
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        var seen: [UInt8] = []
        while true {
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { return }
            for byte in buffer[..<count] {
                seen.append(byte)
                guard byte == 10, seen.suffix(4).elementsEqual([13, 10, 13, 10]) else { continue }
                seen.removeAll(keepingCapacity: true)
                guard sendAll(connection) else { return }
            }
        }
    }

    private func sendAll(_ connection: Int32) -> Bool {
        response.withUnsafeBytes { bytes in
            var done = 0
            while done < bytes.count {
                let count = send(connection, bytes.baseAddress! + done, bytes.count - done, Int32(MSG_NOSIGNAL))
                guard count > 0 else { return false }
                done += count
            }
            return true
        }
    }
}
