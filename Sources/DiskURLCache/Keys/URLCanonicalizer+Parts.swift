import Foundation

// The canonical form of parts of a URL: a host's name, and the beginning of a URL.

extension URLCanonicalizer {
    /// The canonical form of a host's name; nil if no URL can have this host.
    ///
    /// An international name may have each form that Foundation gives for one: `bücher.example` (`URLComponents.host`),
    /// `b%C3%BCcher.example` (`URL.host(percentEncoded:)`) and `xn--bcher-kva.example` (`URL.absoluteString`).
    ///
    /// An IPv6 address may be without the brackets, as `URL.host` gives it.
    static func host(_ name: String) -> String? {
        let name = ipv6Host(name) ?? name
        guard !name.utf8.contains(where: { "/?#@* ".utf8.contains($0) }), !name.hasPrefix("."),
            // A host with a port is not a name. The colons of an IPv6 address are between brackets.
            name.hasPrefix("[") || !name.contains(":"), let name = asciiHost(name)
        else { return nil }
        return parts(of: "http://\(name)/")?.host
    }

    /// An IPv6 address as a URL has it, between brackets and with an escaped percent sign before its zone; nil for any
    /// other text.
    private static func ipv6Host(_ name: String) -> String? {
        let isBracketed = name.hasPrefix("[") && name.hasSuffix("]")
        let inner = isBracketed ? name.dropFirst().dropLast() : name[...]
        let percent = inner.firstIndex(of: "%") ?? inner.endIndex
        guard inner.contains(":"), let address = ipv6("[\(inner[..<percent])]") else { return nil }
        guard percent < inner.endIndex else { return address }
        let zone = inner[percent...].dropFirst(inner[percent...].hasPrefix("%25") ? 3 : 1)
        return zone.isEmpty ? nil : "[\(inner[..<percent])%25\(zone)]"
    }

    /// A name in the letters that a URL has for it; nil for a text that can be no host. The tables of international
    /// names (RFC 5891, UTS 46) are Foundation's: requests get their names by them, too.
    static func asciiHost(_ name: String) -> String? {
        if name.hasPrefix("[") { return name }
        let isPlain = name.utf8.allSatisfy { $0 < 0x80 && $0 != UInt8(ascii: "%") }
        if isPlain { return name }
        guard let plain = name.removingPercentEncoding else { return nil }
        let forbidden = "/?#@*:[]%\\".unicodeScalars
        for scalar in plain.unicodeScalars where scalar.value <= 0x20 || forbidden.contains(scalar) { return nil }
        guard let text = URL(string: "http://\(plain)/")?.absoluteString else { return nil }
        guard text.hasPrefix("http://"), text.hasSuffix("/") else { return nil }
        let host = text.dropFirst("http://".count).dropLast()
        let isWritten = host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x80 && $0 != UInt8(ascii: "%") }
        return isWritten ? String(host) : nil
    }

    /// Whether every client reads a host as the same address. False for an IPv4 address that is not four decimal
    /// numbers: `getaddrinfo` takes `0xa.5` and `167772165` for 10.0.0.5, `URLSession` takes them for no host, and a
    /// rule for 10.0.0.5 does not see them.
    /// - Parameter host: without its trailing dot, and no IPv6 literal.
    static func isReadAlike(_ host: some BidirectionalCollection<UInt8>) -> Bool {
        let dot = UInt8(ascii: ".")
        var last = host[...]
        if let lastDot = host.lastIndex(of: dot) { last = host[host.index(after: lastDot)...] }
        guard let first = last.first, isDigit(first) else { return true }
        guard isHexadecimal(last) || last.allSatisfy(isDigit) else { return true }
        let labels = host.split(separator: dot, omittingEmptySubsequences: false)
        guard labels.count == 4 else { return false }
        for label in labels where !isByte(label) { return false }
        return true
    }

    /// `0x` and any number of digits, of which there may be none.
    private static func isHexadecimal(_ label: some Collection<UInt8>) -> Bool {
        let start = Array(label.prefix(2))
        guard start.count == 2, start[0] == UInt8(ascii: "0"), lowercased(start[1]) == UInt8(ascii: "x") else {
            return false
        }
        return label.dropFirst(2).allSatisfy { isDigit($0) || lowercased($0) &- UInt8(ascii: "a") < 6 }
    }

    /// A decimal number below 256, without zeros before it.
    private static func isByte(_ label: some Collection<UInt8>) -> Bool {
        guard (1...3).contains(label.count), label.allSatisfy(isDigit) else { return false }
        if label.count > 1, label.first == UInt8(ascii: "0") { return false }
        var number = 0
        for digit in label { number = number * 10 + Int(digit - UInt8(ascii: "0")) }
        return number < 256
    }

    private static func lowercased(_ letter: UInt8) -> UInt8 { letter | 0x20 }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- 48 < 10 }

    /// The one spelling of an IPv6 literal (RFC 5952); nil for a text that is none, and for an IPv4 address in this
    /// form, which a rule for that address would not see. One with a zone stays as it is.
    static func ipv6(_ literal: String) -> String? {
        if literal.contains("%") { return literal }
        var address = in6_addr()
        guard inet_pton(AF_INET6, String(literal.dropFirst().dropLast()), &address) == 1 else { return nil }
        let bytes = withUnsafeBytes(of: address) { Array($0) }
        let holdsIPv4 = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
        if holdsIPv4 { return nil }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(AF_INET6, &address, &text, socklen_t(text.count)) != nil else { return nil }
        let letters = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
        return "[\(String(decoding: letters, as: UTF8.self))]"
    }

    /// The canonical form of the beginning of a URL, and its host; nil if no URL begins like this.
    ///
    /// Scheme and host must be complete, the path need not be: `https://example.com/a` is a prefix of
    /// `https://example.com/about`, but `https://example.com` is no prefix of `https://example.com.evil.example/`.
    static func prefix(_ text: String) -> (text: String, host: String)? {
        guard let written = inURLLetters(text), let whole = parts(of: written) else { return nil }
        let text = written.prefix { $0 != "#" }
        guard whole.query == nil, whole.hasDotSegments, let slash = text.lastIndex(of: "/") else {
            return (whole.url, whole.host)
        }
        // The last segment may be incomplete: `/.` may be the beginning of `/.well-known`.
        guard let folder = parts(of: String(text[...slash])) else { return nil }
        let last = normalizedPercentEncoding(Array(text[slash...].utf8.dropFirst()))
        return (folder.url + String(decoding: last, as: UTF8.self), whole.host)
    }

    /// The text in the letters of URLs, as Foundation writes it: the host, and the rest with escapes. Nil if the host
    /// can be none.
    private static func inURLLetters(_ text: String) -> String? {
        guard let start = text.range(of: "://")?.upperBound else { return text }
        let authority = text[start...].prefix { !"/?#".contains($0) }
        let hostStart = authority.lastIndex(of: "@").map { text.index(after: $0) } ?? start
        var host = text[hostStart..<authority.endIndex]
        // The colons of an IPv6 literal are no port's.
        if !host.hasPrefix("[") { host = host.prefix { $0 != ":" } }
        let rest = String(decoding: escaped(text[host.endIndex...].utf8), as: UTF8.self)
        return asciiHost(String(host)).map { text[..<hostStart] + $0 + rest }
    }

    /// Bytes with those escaped that no URL can hold, as Foundation does it.
    static func escaped(_ bytes: some Sequence<UInt8>) -> [UInt8] {
        let digits = Array("0123456789ABCDEF".utf8)
        let forbidden = Array("\"<>\\^`{|}[]".utf8)
        var escaped: [UInt8] = []
        for byte in bytes {
            if byte > 0x20, byte < 0x7F, !forbidden.contains(byte) {
                escaped.append(byte)
            } else {
                escaped.append(UInt8(ascii: "%"))
                escaped.append(digits[Int(byte >> 4)])
                escaped.append(digits[Int(byte & 0xF)])
            }
        }
        return escaped
    }
}

extension URLCanonicalizer.Parts {
    /// The canonical form of the `Host` field of a request for this URL, as of a URL's host and port: the port that the
    /// scheme implies makes no difference. A text that is no host stays as it is, in lower case.
    func canonical(hostField text: String) -> String {
        let text = text.lowercased()
        let mayBeHost = text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && !"%/?#@\\".utf8.contains($0) }
        let scheme = origin.prefix { $0 != ":" }
        guard mayBeHost, let parts = URLCanonicalizer.parts(of: "\(scheme)://\(text)/") else { return text }
        return parts.authority + (parts.hasTrailingDot ? "." : "")
    }
}
