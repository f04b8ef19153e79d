/// The syntax that field values share (RFC 9110 §5.6): tokens, quoted strings and comma-separated lists.
enum FieldSyntax {
    /// The members of a comma-separated list, without surrounding whitespace and without the empty ones.
    ///
    /// A comma inside a quoted string does not separate. A quote that is never closed counts as an ordinary character,
    /// so that a directive behind it is not lost.
    static func members(of value: String) -> [Substring] {
        var places: [Range<Int>] = []
        value.withBytes { bytes in forEachMember(of: bytes) { places.append($0) } }
        let bytes = value.utf8
        return places.map { place in
            let start = bytes.index(bytes.startIndex, offsetBy: place.lowerBound)
            return value[start..<bytes.index(start, offsetBy: place.count)]
        }
    }

    /// Calls with the place of each member in the bytes of a list.
    static func forEachMember(of bytes: UnsafeBufferPointer<UInt8>, _ body: (Range<Int>) -> Void) {
        var start = 0
        var index = 0
        var mayBeQuoted = true
        func endMember() {
            let place = trimming(start..<index, of: bytes)
            if !place.isEmpty { body(place) }
        }
        while index < bytes.count {
            let byte = bytes[index]
            if byte == UInt8(ascii: "\""), mayBeQuoted {
                if let end = endOfQuotedString(in: bytes, from: index) {
                    index = end
                    continue
                }
                // If a quote is never closed, all quotes after it are escaped, so none of those is closed either.
                // Looking for the end of each would take quadratic time.
                mayBeQuoted = false
            }
            if byte == UInt8(ascii: ",") {
                endMember()
                start = index + 1
            }
            index += 1
        }
        endMember()
    }

    /// A place in bytes without optional whitespace (RFC 9110 §5.6.3) at both ends.
    static func trimming(_ place: Range<Int>, of bytes: UnsafeBufferPointer<UInt8>) -> Range<Int> {
        var first = place.lowerBound
        var last = place.upperBound
        while first < last, isWhitespace(bytes[first]) { first += 1 }
        while first < last, isWhitespace(bytes[last - 1]) { last -= 1 }
        return first..<last
    }

    /// The index behind the closing quote of the quoted string that begins at `start`; nil when none closes it.
    static func endOfQuotedString<Bytes: Collection<UInt8>>(in bytes: Bytes, from start: Bytes.Index) -> Bytes.Index? {
        var index = bytes.index(after: start)
        while index < bytes.endIndex {
            switch bytes[index] {
            case UInt8(ascii: "\""):
                return bytes.index(after: index)
            case UInt8(ascii: "\\"):
                index = bytes.index(after: index)
                if index < bytes.endIndex { index = bytes.index(after: index) }
            default:
                index = bytes.index(after: index)
            }
        }
        return nil
    }

    /// The value without optional whitespace (RFC 9110 §5.6.3) at its ends.
    static func trimming(_ value: Substring) -> Substring {
        var bytes = value.utf8
        while let first = bytes.first, isWhitespace(first) { bytes.removeFirst() }
        while let last = bytes.last, isWhitespace(last) { bytes.removeLast() }
        return Substring(bytes)
    }

    /// The text between the quotes of a whole quoted string; nil when the bytes are not one.
    static func unquoting(_ bytes: some BidirectionalCollection<UInt8>) -> String? {
        guard bytes.first == UInt8(ascii: "\""),
            endOfQuotedString(in: bytes, from: bytes.startIndex) == bytes.endIndex
        else { return nil }
        var isEscape = false
        let text = bytes.dropFirst().dropLast().filter { byte in
            isEscape = !isEscape && byte == UInt8(ascii: "\\")
            return !isEscape
        }
        return String(decoding: text, as: UTF8.self)
    }

    static func isToken(_ value: some StringProtocol) -> Bool {
        !value.isEmpty && value.utf8.allSatisfy(isTokenByte)
    }

    /// The letters of a token are ASCII.
    static func lowercased(token: Slice<UnsafeBufferPointer<UInt8>>) -> String {
        String(unsafeUninitializedCapacity: token.count) { room in
            for (index, byte) in token.enumerated() {
                let isUppercase = byte &- 65 < 26
                room[index] = isUppercase ? byte | 0x20 : byte
            }
            return token.count
        }
    }

    /// Letters, digits, and the punctuation of RFC 9110 §5.6.2: ! # $ % & ' * + - . ^ _ ` | ~
    @inline(__always)
    static func isTokenByte(_ byte: UInt8) -> Bool {
        // A bit for each byte below 64, and for each from 64 to 127: one test, where a switch takes a dozen.
        let bits: UInt64 = byte < 64 ? 0x03FF_6CFA_0000_0000 : 0x57FF_FFFF_C7FF_FFFE
        return byte < 128 && bits &>> UInt64(byte & 63) & 1 == 1
    }

    static func isWhitespace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09
    }

    /// RFC 9111 §1.2.2: a greater number counts as 2^31.
    static let greatestDeltaSeconds: Int64 = 1 << 31

    /// `delta-seconds`: digits only; nil for anything else. Seconds have 64 bits everywhere: `Int` has 32 on some
    /// watches, and sums must not trap there.
    static func deltaSeconds(_ value: some StringProtocol) -> Int64? { number(value, limit: greatestDeltaSeconds) }

    /// A number in digits; nil for anything else. A number above the limit becomes the limit.
    static func number<Number: FixedWidthInteger>(_ digits: some StringProtocol, limit: Number) -> Number? {
        guard !digits.isEmpty else { return nil }
        var number: Number = 0
        for byte in digits.utf8 {
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
            let digit = Number(byte - UInt8(ascii: "0"))
            number = number > (limit - digit) / 10 ? limit : number * 10 + digit
        }
        return number
    }
}
