/// What an `HTTPURLResponse` derives from header fields that leave no choice: names spelled as Foundation spells them, and
/// values that need no parser. Most messages are such; for the others it is nil, and Foundation has to look.
struct PlainFields {
    private(set) var mimeType: String?
    private(set) var textEncodingName: String?
    /// -1 where there is none.
    private(set) var expectedContentLength: Int64 = -1

    init?(_ fields: [String: String]) {
        for (name, value) in fields {
            guard Self.isSpelledAsFoundationDoes(name) else { return nil }
            switch name.utf8.count {
            case 12 where name == "Content-Type":
                guard readContentType(value) else { return nil }
            case 14 where name == "Content-Length":
                expectedContentLength = Int64(value) ?? -1
            case 16 where name == "Www-Authenticate":
                // The one that Foundation spells in another way.
                return nil
            case 19 where name == "Content-Disposition":
                // Names a file, by rules of Foundation's own.
                return nil
            default: break
            }
        }
    }

    /// Words of one capital and small letters, joined by hyphens; or a name that starts with `X-`, which is left alone.
    private static func isSpelledAsFoundationDoes(_ name: String) -> Bool {
        var name = name
        return name.withUTF8 { bytes in
            guard bytes.count > 0 else { return false }
            if bytes.count > 1, bytes[0] | 0x20 == UInt8(ascii: "x"), bytes[1] == UInt8(ascii: "-") {
                return bytes.allSatisfy { $0 < 0x80 }
            }
            var startsWord = true
            for byte in bytes {
                if byte == UInt8(ascii: "-") {
                    // Two in a row, or one at the end, are nobody's field.
                    guard !startsWord else { return false }
                    startsWord = true
                } else {
                    guard byte &- (startsWord ? 65 : 97) < 26 else { return false }
                    startsWord = false
                }
            }
            return !startsWord
        }
    }

    /// `type/subtype`, perhaps with `; charset=token` and nothing else.
    private mutating func readContentType(_ value: String) -> Bool {
        var value = value
        return value.withUTF8 { bytes in
            let end = bytes.firstIndex(of: UInt8(ascii: ";")) ?? bytes.count
            let type = bytes[..<end]
            guard !type.isEmpty, type.allSatisfy({ $0 == UInt8(ascii: "/") || FieldSyntax.isTokenByte($0) })
            else { return false }
            if end < bytes.count {
                let parameter = bytes[(end + 1)...].drop { $0 == UInt8(ascii: " ") }
                let charset = parameter.dropFirst(8)
                guard parameter.starts(with: "charset=".utf8), !charset.isEmpty,
                    charset.allSatisfy(FieldSyntax.isTokenByte)
                else { return false }
                textEncodingName = Self.lowercased(charset)
            }
            mimeType = Self.lowercased(type)
            return true
        }
    }

    private static func lowercased(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> String {
        String(unsafeUninitializedCapacity: bytes.count) { result in
            for (index, byte) in bytes.enumerated() { result[index] = byte &- 65 < 26 ? byte | 0x20 : byte }
            return bytes.count
        }
    }
}
