import Foundation

/// Encodes and decodes the metadata of an entry, as described in `OnDiskFormat.md`. `sequence` and `isPinned` are not
/// part of it: they are in the record's footer.
package enum MetadataCodec {
    /// Limits the memory that a lookup may allocate for an entry besides its body. Servers limit the header fields of a
    /// message to 8 to 64 KB; 4 MB leaves room for a large `userInfo`.
    static let maximumLength = 4 << 20

    /// False if the metadata cannot be written: they are too large, or a header field contains a line break and could
    /// be read as two.
    static func write(_ metadata: EntryMetadata, to writer: inout ByteWriter, keepsURL: Bool) -> Bool {
        writer.append(metadata.storedAt.timeIntervalSinceReferenceDate)
        writer.append(optional: keepsURL ? metadata.url : nil)
        switch metadata.response {
        case .http(let response):
            writer.append(UInt8(0))
            guard write(response, to: &writer) else { return false }
        case .other(let mimeType, let expectedContentLength, let textEncodingName):
            writer.append(UInt8(1))
            writer.append(optional: mimeType)
            writer.append(expectedContentLength)
            writer.append(optional: textEncodingName)
        }
        guard PropertyValueCodec.write(metadata.userInfo, to: &writer) else { return false }
        writer.append(UInt32(clamping: metadata.tags.count))
        for tag in metadata.tags { writer.append(tag) }
        if let since = metadata.http?.staleSince { writer.append(since.timeIntervalSinceReferenceDate) }
        return writer.count <= maximumLength
    }

    package static func decode(_ bytes: UnsafeRawBufferPointer, sequence: UInt64, isPinned: Bool) -> EntryMetadata? {
        var reader = ByteReader(bytes)
        guard let storedAt = reader.date(), let url = reader.optionalString(), let kind = reader.number(UInt8.self)
        else { return nil }
        var response: EntryMetadata.Response
        switch kind {
        case 0:
            guard let http = readResponse(from: &reader) else { return nil }
            response = .http(http)
        case 1:
            guard let mimeType = reader.optionalString(), let length = reader.number(Int64.self),
                let encoding = reader.optionalString()
            else { return nil }
            response = .other(mimeType: mimeType, expectedContentLength: length, textEncodingName: encoding)
        default: return nil
        }
        guard let userInfo = PropertyValueCodec.readDictionary(from: &reader),
            let tags = reader.list(4, { $0.string() })
        else { return nil }
        if reader.remaining > 0 {
            guard let since = reader.date(), reader.remaining == 0, case .http(var http) = response else { return nil }
            http.staleSince = since
            response = .http(http)
        }
        return EntryMetadata(
            sequence: sequence, url: url, response: response, storedAt: storedAt, placement: .memoryAndDisk,
            userInfo: userInfo, tags: tags, isPinned: isPinned)
    }

    private static func write(_ response: StoredResponse, to writer: inout ByteWriter) -> Bool {
        guard writer.append(response.method, where: isSafe) else { return false }
        writer.append(Int64(response.status))
        writer.append(response.requestTime.timeIntervalSinceReferenceDate)
        writer.append(response.responseTime.timeIntervalSinceReferenceDate)
        writer.append(UInt32(clamping: response.fields.count))
        var length = 0
        response.fields.forEachField { name, value in length += 8 + name.utf8.count + value.utf8.count }
        // This is too long in any case.
        guard length <= maximumLength else { return false }
        let areSafe = writer.append(length) { cursor in
            var areSafe = true
            response.fields.forEachField { name, value in
                areSafe = areSafe && cursor.append(name, where: isSafe) && cursor.append(value, where: isSafe)
            }
            return areSafe
        }
        guard areSafe else { return false }
        writer.append(UInt8(response.vary.matchesNothing ? 1 : 0))
        writer.append(UInt32(clamping: response.vary.fields.count))
        for field in response.vary.fields {
            writer.append(field.name)
            let kind: UInt8
            if field.value == nil {
                kind = 0
            } else {
                kind = field.salt == nil ? 1 : 2
            }
            writer.append(kind)
            field.salt?.bytes.withUnsafeBytes { writer.append($0) }
            if let value = field.value { writer.append(value) }
        }
        return true
    }

    private static func readResponse(from reader: inout ByteReader) -> StoredResponse? {
        guard let method = reader.stringBytes(), isSafe(method), let status = reader.number(Int64.self),
            let requestTime = reader.date(), let responseTime = reader.date(),
            let fields = readFields(from: &reader), let vary = readVary(from: &reader)
        else { return nil }
        return StoredResponse(
            method: String(decoding: method, as: UTF8.self), status: Int(truncatingIfNeeded: status), fields: fields,
            requestTime: requestTime,
            responseTime: responseTime, vary: vary)
    }

    /// Checks the fields and keeps their bytes. Their strings are made only if somebody reads them, which a caller that
    /// wants just the body never does.
    private static func readFields(from reader: inout ByteReader) -> HeaderFields? {
        var rest = reader
        guard let count = rest.count(shortestField) else { return nil }
        for _ in 0..<count {
            guard let name = rest.stringBytes(), isSafe(name), let value = rest.stringBytes(), isSafe(value)
            else { return nil }
        }
        guard let raw = reader.raw(rest.position - reader.position) else { return nil }
        let size = raw.count + count * HeaderFields.fieldOverhead
        return HeaderFields(estimatedSize: size, later: [UInt8](raw), makeFields)
    }

    /// In bytes: two lengths.
    private static let shortestField = 8

    @Sendable
    private static func makeFields(of bytes: UnsafeRawBufferPointer) -> [HeaderFields.Field] {
        var reader = ByteReader(bytes)
        var fields: [HeaderFields.Field] = []
        fields.reserveCapacity(reader.count(shortestField) ?? 0)
        while let name = reader.string(), let value = reader.string() {
            fields.append(HeaderFields.Field(name: name, value: value))
        }
        return fields
    }

    private static func readVary(from reader: inout ByteReader) -> VaryKey? {
        guard let matchesNothing = reader.boolean(), let fields = reader.list(5, readVaryField) else { return nil }
        return VaryKey(fields: fields, matchesNothing: matchesNothing)
    }

    private static func readVaryField(from reader: inout ByteReader) -> VaryKey.Field? {
        guard let name = reader.string(), let form = reader.number(UInt8.self), form <= 2 else { return nil }
        var field = VaryKey.Field(name: name)
        if form == 2 {
            guard let salt = reader.raw(CredentialSalt.length) else { return nil }
            field.salt = CredentialSalt([UInt8](salt))
        }
        if form > 0 {
            guard let digest = reader.digest() else { return nil }
            field.value = digest
        }
        return field
    }

    /// Whether the text has no CR, LF or NUL, which would end or cut the field when it is written out again.
    @inline(__always)
    private static func isSafe(_ bytes: UnsafeRawBufferPointer) -> Bool {
        // A text that is too long anyway need not be searched.
        guard bytes.count <= maximumLength else { return false }
        if !bytes.mayHaveByte(below: 14) { return true }
        // NUL, LF or CR.
        return !bytes.contains { $0 == 0 || $0 == 10 || $0 == 13 }
    }
}
