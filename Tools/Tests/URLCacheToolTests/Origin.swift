#if os(Linux)
    import Foundation
    import Glibc

    /// A local origin. Its answers may be kept for an hour, except for `/none`. Some have control characters in
    /// `Content-Type`, which a server of good manners would not send.
    final class Origin: Sendable {
        let url: String
        private let listener: Int32

        init() throws {
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = in_addr_t(0x7F00_0001).bigEndian
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isListening = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(listener, $0, length) == 0 && listen(listener, 8) == 0
                        && getsockname(listener, $0, &length) == 0
                }
            }
            guard isListening else { throw POSIXError(.EADDRNOTAVAIL) }
            self.listener = listener
            url = "http://127.0.0.1:\(UInt16(bigEndian: address.sin_port))"
            Thread.detachNewThread {
                while case let connection = accept(listener, nil, nil), connection >= 0 { Self.answer(connection) }
            }
        }

        deinit {
            shutdown(listener, Int32(SHUT_RDWR))
            close(listener)
        }

        private static func answer(_ connection: Int32) {
            defer { close(connection) }
            var request = [UInt8](repeating: 0, count: 8_192)
            let count = read(connection, &request, request.count)
            let line = String(decoding: request[..<max(0, count)], as: UTF8.self).prefix { $0 != "\r\n" }
            // Escape sequences in seven bits and DEL; an escape sequence in eight bits, and a mark that turns the
            // direction of writing.
            let types = ["/escape": "text/x\u{1B}[2J\u{7F}", "/turned": "text/x\u{9B}2J\u{202E}"]
            let type = types.first { line.contains($0.key) }?.value ?? "text/plain"
            var response = Array("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n".utf8)
            response += Array("Cache-Control: \(line.contains("/none") ? "no-store" : "max-age=3600")\r\n".utf8)
            response += Array("Content-Type: \(type)\r\n\r\n".utf8)
            if !line.hasPrefix("HEAD") { response += Array("hello".utf8) }
            _ = write(connection, response, response.count)
        }
    }
#endif
