import Foundation

/// The metadata of a record in a pack: what `MetadataCodec` writes, in fewer bytes. Lengths take one byte where they can, and common
/// field names take one byte in place of themselves: for a small answer they are a quarter of all.
enum PackMetadata {
    static func write(_ metadata: EntryMetadata, to writer: inout ByteWriter, keepsURL: Bool) -> Bool {
        writer.append(metadata.storedAt.timeIntervalSinceReferenceDate)
        writer.append(compact: keepsURL ? metadata.url : nil)
        switch metadata.response {
        case .http(let response):
            writer.append(UInt8(0))
            guard write(response, to: &writer) else { return false }
        case .other(let mimeType, let expectedContentLength, let textEncodingName):
            writer.append(UInt8(1))
            writer.append(compact: mimeType)
            writer.append(expectedContentLength)
            writer.append(compact: textEncodingName)
        }
        if metadata.userInfo.isEmpty {
            writer.append(UInt8(0))
        } else {
            writer.append(UInt8(1))
            guard PropertyValueCodec.write(metadata.userInfo, to: &writer) else { return false }
        }
        writer.append(length: metadata.tags.count)
        for tag in metadata.tags { writer.append(compact: tag) }
        return writer.count <= PackRecord.maximumMetadata
    }

    private static func write(_ response: StoredResponse, to writer: inout ByteWriter) -> Bool {
        var areSafe = writer.append(name: response.method)
        writer.append(length: max(0, response.status))
        writer.append(response.requestTime.timeIntervalSinceReferenceDate)
        writer.append(response.responseTime.timeIntervalSinceReferenceDate)
        writer.append(length: response.fields.count)
        response.fields.forEachField { name, value in
            areSafe = areSafe && writer.append(name: name) && writer.append(safe: value)
        }
        writer.append(length: response.vary.fields.count << 1 | (response.vary.matchesNothing ? 1 : 0))
        for field in response.vary.fields {
            areSafe = areSafe && writer.append(name: field.name)
            writer.append(UInt8(field.value == nil ? 0 : 1))
            if let value = field.value { writer.append(value) }
        }
        return areSafe && response.status >= 0
    }

    static func decode(_ bytes: UnsafeRawBufferPointer, sequence: UInt64, isPinned: Bool) -> EntryMetadata? {
        var reader = ByteReader(bytes)
        guard let storedAt = reader.date(), let url = reader.compactOptional(), let kind = reader.boolean()
        else { return nil }
        let response: EntryMetadata.Response
        if kind {
            guard let mimeType = reader.compactOptional(), let length = reader.number(Int64.self),
                let encoding = reader.compactOptional()
            else { return nil }
            response = .other(mimeType: mimeType, expectedContentLength: length, textEncodingName: encoding)
        } else {
            guard let http = readResponse(from: &reader) else { return nil }
            response = .http(http)
        }
        guard let hasInfo = reader.boolean() else { return nil }
        var userInfo: [String: PropertyValue] = [:]
        if hasInfo {
            guard let read = PropertyValueCodec.readDictionary(from: &reader) else { return nil }
            userInfo = read
        }
        guard let tagCount = reader.length(), tagCount <= reader.remaining else { return nil }
        var tags: [String] = []
        for _ in 0..<tagCount {
            guard let tag = reader.compactOptional() ?? nil else { return nil }
            tags.append(tag)
        }
        guard reader.remaining == 0 else { return nil }
        return EntryMetadata(
            sequence: sequence, url: url, response: response, storedAt: storedAt, placement: .memoryAndDisk,
            userInfo: userInfo, tags: tags, isPinned: isPinned)
    }

    private static func readResponse(from reader: inout ByteReader) -> StoredResponse? {
        guard let method = reader.name(), let status = reader.length(), let requestTime = reader.date(),
            let responseTime = reader.date(), let fields = readFields(from: &reader)
        else { return nil }
        guard let varyCount = reader.length(), varyCount / 2 <= reader.remaining else { return nil }
        var vary = VaryKey(fields: [], matchesNothing: varyCount & 1 != 0)
        for _ in 0..<varyCount / 2 {
            guard let name = reader.name(), let hasValue = reader.boolean() else { return nil }
            var value: KeyDigest?
            if hasValue {
                guard let digest = reader.digest() else { return nil }
                value = digest
            }
            vary.fields.append(VaryKey.Field(name: name, value: value))
        }
        return StoredResponse(
            method: method, status: status, fields: fields, requestTime: requestTime, responseTime: responseTime,
            vary: vary)
    }

    /// Checks the fields and keeps their bytes: a caller who wants the body alone never has their strings made.
    private static func readFields(from reader: inout ByteReader) -> HeaderFields? {
        guard let count = reader.length(), count <= reader.remaining / 2 else { return nil }
        var rest = reader
        for _ in 0..<count {
            guard rest.skipName(), let length = rest.length(), let value = rest.raw(length), MetadataCodec.isSafe(value)
            else { return nil }
        }
        guard let raw = reader.raw(rest.position - reader.position) else { return nil }
        let bytes = [UInt8](raw)
        return HeaderFields(estimatedSize: bytes.count + count * (HeaderFields.fieldOverhead + 12)) {
            bytes.withUnsafeBytes { bytes in
                var reader = ByteReader(bytes)
                var fields: [HeaderFields.Field] = []
                fields.reserveCapacity(count)
                while let name = reader.name(), let value = reader.compact() {
                    fields.append(HeaderFields.Field(name: name, value: value))
                }
                return fields
            }
        }
    }
}

/// Texts that have a number of one byte. The numbers are part of the format: texts are only ever added at the end.
private enum CommonNames {
    static let texts = [
        "GET", "Accept-Ranges", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials",
        "Access-Control-Allow-Headers", "Access-Control-Allow-Methods", "Access-Control-Expose-Headers", "Age",
        "Alt-Svc", "CF-Cache-Status", "CF-RAY", "Cache-Control", "Connection", "Content-Disposition",
        "Content-Encoding", "Content-Language", "Content-Length", "Content-Location", "Content-Security-Policy",
        "Content-Type", "Cross-Origin-Resource-Policy", "Date", "ETag", "Etag", "Expires", "Keep-Alive",
        "Last-Modified", "Link", "Location", "NEL", "Permissions-Policy", "Pragma", "Referrer-Policy", "Report-To",
        "Server", "Server-Timing", "Strict-Transport-Security", "Timing-Allow-Origin", "Transfer-Encoding", "Vary",
        "Via", "X-Amz-Cf-Id", "X-Cache", "X-Content-Type-Options", "X-Frame-Options", "X-Powered-By",
        "X-Request-Id", "X-XSS-Protection", "accept", "accept-encoding", "accept-language", "cookie", "origin",
        "user-agent", "POST", "HEAD",
    ]

    private static func hash(_ bytes: UnsafeRawBufferPointer) -> Int {
        let count = bytes.count
        guard count > 2 else { return count }
        return (count &* 31 &+ Int(bytes[0]) &* 7 &+ Int(bytes[count / 2]) &* 5 &+ Int(bytes[count - 1])) & 255
    }

    /// A number plus one for each place of a hash, 0 where there is none.
    private static let places: [UInt8] = {
        var places = [UInt8](repeating: 0, count: 256)
        for (number, text) in texts.enumerated() {
            var text = text
            var place = text.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
            while places[place] != 0 { place = (place + 1) & 255 }
            places[place] = UInt8(number + 1)
        }
        return places
    }()

    static func number(of text: String) -> UInt8? {
        var text = text
        var place = text.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
        while places[place] != 0 {
            if texts[Int(places[place]) - 1] == text { return places[place] - 1 }
            place = (place + 1) & 255
        }
        return nil
    }
}

extension ByteWriter {
    /// Seven bits a byte, the lowest first.
    fileprivate mutating func append(length: Int) {
        var rest = UInt64(length)
        while rest > 127 {
            append(UInt8(truncatingIfNeeded: rest) | 128)
            rest >>= 7
        }
        append(UInt8(rest))
    }

    /// False, and nothing of use written, for a text that could forge a field.
    fileprivate mutating func append(safe text: String) -> Bool {
        var text = text
        return text.withUTF8 {
            guard MetadataCodec.isSafe(.init($0)) else { return false }
            append(length: $0.count)
            append(UnsafeRawBufferPointer($0))
            return true
        }
    }

    /// A number below 128, or 128 and the text.
    fileprivate mutating func append(name: String) -> Bool {
        if let number = CommonNames.number(of: name) {
            append(number)
            return true
        }
        append(UInt8(128))
        return append(safe: name)
    }

    /// The length plus one, or 0 for nil.
    fileprivate mutating func append(compact text: String?) {
        guard var text else { return append(UInt8(0)) }
        text.withUTF8 {
            append(length: $0.count + 1)
            append(UnsafeRawBufferPointer($0))
        }
    }
}

extension ByteReader {
    fileprivate mutating func length() -> Int? {
        var value = 0
        for shift in stride(from: 0, to: 35, by: 7) {
            guard let byte = number(UInt8.self) else { return nil }
            value |= Int(byte & 127) << shift
            if byte < 128 { return value }
        }
        return nil
    }

    fileprivate mutating func compact() -> String? {
        guard let count = length() else { return nil }
        return raw(count).map { String(decoding: $0, as: UTF8.self) }
    }

    fileprivate mutating func compactOptional() -> String?? {
        guard let count = length() else { return nil }
        if count == 0 { return .some(nil) }
        return raw(count - 1).map { String(decoding: $0, as: UTF8.self) }
    }

    fileprivate mutating func name() -> String? {
        guard let number = number(UInt8.self) else { return nil }
        if number < 128 { return Int(number) < CommonNames.texts.count ? CommonNames.texts[Int(number)] : nil }
        return number == 128 ? compact() : nil
    }

    fileprivate mutating func skipName() -> Bool {
        guard let number = number(UInt8.self) else { return false }
        if number < 128 { return Int(number) < CommonNames.texts.count }
        guard number == 128, let count = length(), let text = raw(count) else { return false }
        return MetadataCodec.isSafe(text)
    }
}
