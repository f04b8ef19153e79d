import Foundation

/// The canonical form of an `http` or `https` URL (RFC 3986 §6.2.2 and §6.2.3): keys, rules, prefixes, criteria and
/// hashes all compare this one.
///
/// Lower-case scheme and host, user information, the host's trailing dot, the default port and the fragment dropped,
/// percent-encoding normalised (upper-case digits, unreserved characters decoded), dot segments removed, an empty path
/// written as `/`. The query is kept byte for byte: its order and spelling may mean something to the server.
package enum URLCanonicalizer {
    /// The canonical form in its parts, and the parts of the URL that it lacks.
    struct Parts {
        /// `scheme://host` with the port, unless that is the scheme's default.
        var origin: String
        /// Without a trailing dot.
        var host: String
        var path: String
        /// Without the question mark; nil when the URL has none.
        var query: String?
        /// The user name and password of the URL, as they are written there; empty when the URL has none.
        var userInformation = ""
        /// The URL's host ends with a dot, which clients send in the `Host` field.
        var hasTrailingDot = false
        /// The URL's path has segments `.` or `..`, escaped or not. Some clients send them as they are.
        var hasDotSegments = false

        /// Host and port, as the `Host` field has them.
        var authority: Substring { origin.dropFirst(origin.hasPrefix("https") ? 8 : 7) }

        var url: String {
            query.map { "\(origin)\(path)?\($0)" } ?? origin + path
        }
    }

    /// The canonical form; nil unless the text is an absolute `http` or `https` URL with a host.
    package static func canonical(_ text: String) -> String? {
        isNormal(text) ? text : parts(of: text)?.url
    }

    /// Nil unless the text is an absolute `http` or `https` URL with a host.
    static func parts(of text: String) -> Parts? {
        text.withBytes { parts(of: $0) }
    }

    private static func parts(of bytes: UnsafeBufferPointer<UInt8>) -> Parts? {
        guard let colon = bytes.firstIndex(of: .colon), colon == 4 || colon == 5 else { return nil }
        let scheme = asciiLowercased(bytes[..<colon])
        guard scheme == "http" || scheme == "https" else { return nil }
        guard bytes.count > colon + 3, bytes[colon + 1] == .slash, bytes[colon + 2] == .slash else { return nil }

        let rest = bytes[(colon + 3)...]
        let end = rest.firstIndex(of: .hash) ?? bytes.endIndex
        let beforeFragment = bytes[(colon + 3)..<end]
        let authorityEnd = beforeFragment.firstIndex { $0 == .slash || $0 == .question } ?? end
        let queryStart = bytes[authorityEnd..<end].firstIndex(of: .question)

        let authority = bytes[(colon + 3)..<authorityEnd]
        let hostStart = authority.lastIndex(of: .at).map { $0 + 1 } ?? authority.startIndex
        let userInformation = authority[..<hostStart].dropLast()
        var hostEnd = authority.endIndex
        var port = authority[hostEnd...]
        // An IPv6 literal contains colons; the port's colon comes after the bracket.
        if let portColon = authority[hostStart...].lastIndex(of: .colon),
            !authority[portColon...].contains(.closingBracket)
        {
            hostEnd = portColon
            port = authority[(portColon + 1)...]
        }
        var host = asciiLowercased(normalizedPercentEncoding(authority[hostStart..<hostEnd]))
        let hasTrailingDot = host.hasSuffix(".")
        if hasTrailingDot { host.removeLast() }
        if host.hasPrefix("["), host.hasSuffix("]") {
            guard let literal = ipv6(host) else { return nil }
            host = literal
        } else {
            // A colon or bracket outside of an IPv6 literal: no request could be sent to such a URL. A host with an
            // escape is another host for each client.
            let forbidden: [UInt8] = [.colon, .openingBracket, .closingBracket, .percent]
            guard !host.utf8.contains(where: forbidden.contains) else { return nil }
            guard let name = asciiHost(host), isReadAlike(name.utf8) else { return nil }
            host = name
        }
        guard !host.isEmpty, !host.hasSuffix(".") else { return nil }
        guard port.allSatisfy({ $0 >= 48 && $0 <= 57 }) else { return nil }
        // Port 0 is no port that a request could be sent to.
        guard port.isEmpty || port.contains(where: { $0 != 48 }) else { return nil }

        var origin = "\(scheme)://\(host)"
        let portText = String(decoding: port.drop { $0 == 48 }, as: UTF8.self)
        if !portText.isEmpty, portText != (scheme == "http" ? "80" : "443") {
            origin += ":\(portText)"
        }
        let path = normalizedPercentEncoding(bytes[authorityEnd..<(queryStart ?? end)])
        let withoutDots = removingDotSegments(path)
        return Parts(
            origin: origin, host: host,
            path: path.isEmpty ? "/" : withoutBrackets(withoutDots),
            query: queryStart.map { withoutBrackets(bytes[($0 + 1)..<end]) },
            userInformation: String(decoding: userInformation, as: UTF8.self), hasTrailingDot: hasTrailingDot,
            hasDotSegments: withoutDots != path)
    }

    /// Whether a text is an `http` or `https` URL in its canonical form, decided in one pass without allocating. False
    /// also for rare forms that `parts(of:)` has to judge: IPv6 literals, a segment that begins with a dot.
    static func isNormal(_ text: String) -> Bool {
        // Bridged strings of Apple platforms may have no contiguous bytes: those take the long way.
        text.utf8.withContiguousStorageIfAvailable(isNormal) ?? false
    }

    private static func isNormal(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        let count = bytes.count
        guard let base = bytes.baseAddress, count > 8, bytes[0] == 0x68, bytes[1] == 0x74, bytes[2] == 0x74,
            bytes[3] == 0x70
        else { return false }
        let isSecure = bytes[4] == 0x73
        var index = isSecure ? 5 : 4
        guard bytes[index] == .colon, bytes[index + 1] == .slash, bytes[index + 2] == .slash else { return false }
        index += 3

        let hostStart = index
        while index < count, isHostByte(bytes[index]) { index += 1 }
        guard index > hostStart, index < count, bytes[index - 1] != .dot else { return false }
        // A last label that begins with a digit may be a part of an address.
        var label = index - 1
        while label > hostStart, bytes[label - 1] != .dot { label -= 1 }
        if bytes[label] &- 48 < 10, !isReadAlike(UnsafeBufferPointer(rebasing: bytes[hostStart..<index])) {
            return false
        }
        if bytes[index] == .colon {
            let portStart = index + 1
            var port = 0
            index = portStart
            while index < count, bytes[index] &- 48 < 10, port < 100_000 {
                port = port * 10 + Int(bytes[index] - 48)
                index += 1
            }
            guard index > portStart, bytes[portStart] != 48, port != (isSecure ? 443 : 80) else { return false }
        }
        guard index < count, bytes[index] == .slash else { return false }

        /// The first place of a byte at or after `start`, found by words; `end` if there is none.
        func next(_ byte: UInt8, from start: Int, to end: Int) -> Int {
            guard let found = memchr(base + start, Int32(byte), end - start) else { return end }
            return found - UnsafeMutableRawPointer(mutating: base)
        }
        guard next(.hash, from: index, to: count) == count else { return false }
        guard next(.openingBracket, from: index, to: count) == count,
            next(.closingBracket, from: index, to: count) == count
        else { return false }
        let end = next(.question, from: index, to: count)
        // The path begins with a slash, so each dot has a byte before it.
        var dot = next(.dot, from: index, to: end)
        while dot < end {
            if bytes[dot - 1] == .slash { return false }
            dot = next(.dot, from: dot + 1, to: end)
        }
        var percent = next(.percent, from: index, to: end)
        while percent < end {
            // Upper-case digits, and no escaped character that needs no escape.
            guard percent + 2 < count else { return false }
            guard bytes[percent + 1] < 97, let high = HexDigits.value(of: bytes[percent + 1]) else { return false }
            guard bytes[percent + 2] < 97, let low = HexDigits.value(of: bytes[percent + 2]) else { return false }
            guard !isUnreserved(high << 4 | low) else { return false }
            percent = next(.percent, from: percent + 1, to: end)
        }
        return true
    }

    private static func isHostByte(_ byte: UInt8) -> Bool {
        byte &- 97 < 26 || byte &- 48 < 10 || byte == .dot || byte == 0x2d
    }

    /// The host of a URL in canonical form.
    static func host(ofNormal url: String) -> String {
        url.withBytes { bytes in
            guard let base = bytes.baseAddress, bytes.count > 7 else { return "" }
            let start = bytes[5] == .slash ? 7 : 8
            // A key of the cache's own is no URL.
            guard bytes.count > start, bytes[start - 1] == .slash else { return "" }
            func next(_ byte: UInt8, in place: Range<Int>) -> Int? {
                memchr(base + place.lowerBound, Int32(byte), place.count).map {
                    $0 - UnsafeMutableRawPointer(mutating: base)
                }
            }
            let end = next(.slash, in: start..<bytes.count) ?? bytes.count
            // An IPv6 literal contains colons.
            let port = next(.closingBracket, in: start..<end) ?? start
            let length = (next(.colon, in: port..<end) ?? end) - start
            guard length > 0 else { return "" }
            // Each load counts under its host, and `String(decoding:as:)` takes three times as long for a short one.
            return String(unsafeUninitializedCapacity: length) { buffer in
                memcpy(buffer.baseAddress!, base + start, length)
                return length
            }
        }
    }

    /// RFC 3986 allows no bracket there. Some versions of Foundation escape them, others do not.
    private static func withoutBrackets(_ bytes: some Collection<UInt8>) -> String {
        guard bytes.contains(where: { $0 == .openingBracket || $0 == .closingBracket }) else {
            return String(decoding: bytes, as: UTF8.self)
        }
        return String(decoding: bytes, as: UTF8.self)
            .replacingOccurrences(of: "[", with: "%5B").replacingOccurrences(of: "]", with: "%5D")
    }

    private static func asciiLowercased(_ bytes: some Collection<UInt8>) -> String {
        let lowercased = bytes.map { byte in
            (65...90).contains(byte) ? byte | 0x20 : byte
        }
        return String(decoding: lowercased, as: UTF8.self)
    }

    /// RFC 3986 §6.2.2.1 and §6.2.2.2. A percent sign that starts no valid triplet is left as it is.
    static func normalizedPercentEncoding(_ bytes: some Collection<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var rest = Array(bytes)[...]
        while let byte = rest.popFirst() {
            guard byte == .percent, rest.count >= 2, let high = HexDigits.value(of: rest[rest.startIndex]),
                let low = HexDigits.value(of: rest[rest.startIndex + 1])
            else {
                result.append(byte)
                continue
            }
            let decoded = high << 4 | low
            if isUnreserved(decoded), !makesEscape(decoded, behind: result.suffix(2)) {
                result.append(decoded)
            } else {
                // The digits in upper case.
                result.append(.percent)
                for digit in rest.prefix(2) { result.append(digit < UInt8(ascii: "a") ? digit : digit - 32) }
            }
            rest.removeFirst(2)
        }
        return result
    }

    /// Whether a byte may be a digit of an escape behind a percent sign that begins none so far.
    private static func makesEscape(_ byte: UInt8, behind tail: ArraySlice<UInt8>) -> Bool {
        guard HexDigits.value(of: byte) != nil, let last = tail.last else { return false }
        return last == .percent || tail.first == .percent && HexDigits.value(of: last) != nil
    }

    /// RFC 3986 §5.2.4 for a path that starts with a slash.
    static func removingDotSegments(_ path: [UInt8]) -> [UInt8] {
        // Most paths with a dot have it in the name of a file.
        guard zip(path, path.dropFirst()).contains(where: { $0 == .slash && $1 == .dot }) else { return path }
        var output: [ArraySlice<UInt8>] = []
        let segments = path.dropFirst().split(separator: .slash, omittingEmptySubsequences: false)
        for (position, segment) in segments.enumerated() {
            let isLast = position == segments.count - 1
            switch segment {
            case [.dot]:
                if isLast { output.append([]) }
            case [.dot, .dot]:
                _ = output.popLast()
                if isLast { output.append([]) }
            default:
                output.append(segment)
            }
        }
        return [.slash] + output.joined(separator: [.slash])
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        switch byte {
        case 48...57, 65...90, 97...122, .dot, UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"): true
        default: false
        }
    }
}

extension UInt8 {
    fileprivate static let percent = UInt8(ascii: "%")
    fileprivate static let colon = UInt8(ascii: ":")
    fileprivate static let slash = UInt8(ascii: "/")
    fileprivate static let question = UInt8(ascii: "?")
    fileprivate static let hash = UInt8(ascii: "#")
    fileprivate static let at = UInt8(ascii: "@")
    fileprivate static let dot = UInt8(ascii: ".")
    fileprivate static let openingBracket = UInt8(ascii: "[")
    fileprivate static let closingBracket = UInt8(ascii: "]")
}
