import Foundation

/// Reads requests from one connection, one after the other.
struct OriginRequestReader {
    let socket: StreamSocket
    private var buffer: [UInt8] = []

    /// No request of a test is larger; a larger one means that something is broken.
    private static let headLimit = 4 << 20

    init(socket: StreamSocket) {
        self.socket = socket
    }

    /// Nil at the end of the connection, or at bytes that are not HTTP.
    mutating func next() -> OriginRequest? {
        guard let requestLine = line(), !requestLine.isEmpty else { return nil }
        let words = requestLine.split(separator: " ")
        guard words.count == 3, words[2].hasPrefix("HTTP/1.") else { return nil }
        guard let fields = readFields() else { return nil }

        if let expectation = fields["Expect"], expectation.lowercased() == "100-continue" {
            guard socket.send(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) else { return nil }
        }
        guard let body = body(fields) else { return nil }
        return OriginRequest(
            method: String(words[0]), target: String(words[1]), fields: fields, body: body, number: 0, connection: 0)
    }

    private mutating func readFields() -> OriginFields? {
        var fields = OriginFields()
        while let line = line() {
            if line.isEmpty { return fields }
            guard let colon = line.firstIndex(of: ":") else { return nil }
            let value = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
            fields.append(String(line[..<colon]), value)
        }
        return nil
    }

    private mutating func body(_ fields: OriginFields) -> Data? {
        if let coding = fields["Transfer-Encoding"], coding.lowercased().contains("chunked") {
            return chunkedBody()
        }
        guard let length = fields["Content-Length"] else { return Data() }
        return Int(length).flatMap { take($0) }.map { Data($0) }
    }

    private mutating func chunkedBody() -> Data? {
        var body = Data()
        while let header = line(), let size = Int(header.prefix { $0 != ";" }, radix: 16) {
            if size == 0 {
                return readFields() == nil ? nil : body
            }
            guard let chunk = take(size), line() == "" else { return nil }
            body.append(contentsOf: chunk)
        }
        return nil
    }

    private mutating func line() -> String? {
        var searched = 0
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                var line = buffer[..<end]
                if line.last == UInt8(ascii: "\r") { line.removeLast() }
                let text = String(decoding: line, as: UTF8.self)
                buffer.removeSubrange(...end)
                return text
            }
            searched = buffer.count
            guard buffer.count < Self.headLimit, fill() else { return nil }
        }
    }

    private mutating func take(_ count: Int) -> [UInt8]? {
        guard count >= 0 else { return nil }
        while buffer.count < count {
            guard fill() else { return nil }
        }
        let bytes = Array(buffer.prefix(count))
        buffer.removeFirst(count)
        return bytes
    }

    private mutating func fill() -> Bool {
        guard let bytes = socket.receive() else { return false }
        buffer.append(contentsOf: bytes)
        return true
    }
}

/// Writes one response.
struct OriginResponseWriter {
    let socket: StreamSocket

    /// Returns whether the connection stays open.
    func write(_ response: OriginResponse, to request: OriginRequest) -> Bool {
        response.beforeHead?()
        if response.ending == .noResponse { return false }
        if let bytes = response.rawBytes {
            _ = socket.send(Array(bytes))
            return false
        }
        for interim in response.interim {
            guard socket.send(head(interim.status, interim.reason, interim.fields)) else { return false }
        }

        let hasNoContent = response.status == 204 || response.status == 304 || response.status < 200
        let framed = fields(of: response, hasNoContent: hasNoContent)
        let head = head(response.status, response.reason, framed)
        if hasNoContent || request.method == "HEAD" {
            return socket.send(head) && response.ending == .keepAlive
        }
        return sendContent(of: response, after: head) && response.ending == .keepAlive
    }

    private func fields(of response: OriginResponse, hasNoContent: Bool) -> OriginFields {
        var fields = response.fields
        if response.sendsDate, fields["Date"] == nil {
            fields.append("Date", HTTPDateText.text(Date()))
        }
        if response.isChunked {
            fields.set("Transfer-Encoding", "chunked")
        } else if fields["Content-Length"] == nil, !hasNoContent {
            fields.append("Content-Length", String(response.body.count))
        }
        if response.ending == .close { fields.set("Connection", "close") }
        return fields
    }

    private func head(_ status: Int, _ reason: String, _ fields: OriginFields) -> [UInt8] {
        var text = "HTTP/1.1 \(status) \(reason)\r\n"
        for field in fields.fields { text += "\(field.name): \(field.value)\r\n" }
        return Array((text + "\r\n").utf8)
    }

    /// If nothing delays the first part, the head is sent together with it, as a real server would do.
    private func sendContent(of response: OriginResponse, after head: [UInt8]) -> Bool {
        var bytes = Array(response.body)
        if case .cutBody(let count) = response.ending { bytes = Array(bytes.prefix(max(count, 0))) }
        let partSize = max(response.partSize ?? max(bytes.count, 1), 1)

        var pending = head
        for (number, start) in stride(from: 0, to: bytes.count, by: partSize).enumerated() {
            if let beforePart = response.beforePart {
                guard socket.send(pending) else { return false }
                pending = []
                beforePart(number)
            }
            let part = bytes[start..<min(start + partSize, bytes.count)]
            if response.isChunked {
                pending += Array("\(String(part.count, radix: 16))\r\n".utf8) + part + Array("\r\n".utf8)
            } else {
                pending += part
            }
            if response.partSize != nil {
                guard socket.send(pending) else { return false }
                pending = []
            }
        }
        if response.isChunked, response.ending == .keepAlive || response.ending == .close {
            pending += Array("0\r\n\r\n".utf8)
        }
        return socket.send(pending)
    }
}

/// HTTP dates as a server writes them. Not by the library's own code, which the tests are to check.
public enum HTTPDateText {
    public static func text(_ date: Date) -> String {
        text(date, day: "EEE", pattern: "dd MMM yyyy HH:mm:ss 'GMT'")
    }

    /// The obsolete form with two digits for the year.
    public static func rfc850(_ date: Date) -> String {
        text(date, day: "EEEE", pattern: "dd-MMM-yy HH:mm:ss 'GMT'")
    }

    private static func text(_ date: Date, day: String, pattern: String) -> String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "\(day), \(pattern)"
        return formatter.string(from: date)
    }
}
