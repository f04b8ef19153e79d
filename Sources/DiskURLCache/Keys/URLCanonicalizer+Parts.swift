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
        if name.hasPrefix("[") || name.utf8.allSatisfy({ $0 < 0x80 && $0 != UInt8(ascii: "%") }) { return name }
        guard let plain = name.removingPercentEncoding,
            !plain.unicodeScalars.contains(where: { $0.value <= 0x20 || "/?#@*:[]%\\".unicodeScalars.contains($0) }),
            let text = URL(string: "http://\(plain)/")?.absoluteString, text.hasPrefix("http://"), text.hasSuffix("/")
        else { return nil }
        let host = text.dropFirst(7).dropLast()
        return host.utf8.allSatisfy { $0 > 0x20 && $0 < 0x80 && $0 != UInt8(ascii: "%") } ? String(host) : nil
    }

    /// Whether every client reads a host as the same address. False for an IPv4 address that is not four decimal
    /// numbers: `getaddrinfo` takes `0xa.5` and `167772165` for 10.0.0.5, `URLSession` takes them for no host, and a
    /// rule for 10.0.0.5 does not see them.
    /// - Parameter host: without its trailing dot, and no IPv6 literal.
    static func isReadAlike(_ host: some BidirectionalCollection<UInt8>) -> Bool {
        let dot = UInt8(ascii: ".")
        let last = host[(host.lastIndex(of: dot).map { host.index(after: $0) } ?? host.startIndex)...]
        guard let first = last.first, isDigit(first) else { return true }
        let hexadecimal = last.dropFirst(2)
        let isHexadecimal =
            first == UInt8(ascii: "0") && last.dropFirst().first.map { $0 | 0x20 } == UInt8(ascii: "x")
            && hexadecimal.allSatisfy { isDigit($0) || ($0 | 0x20) &- 97 < 6 }
        guard isHexadecimal || last.allSatisfy(isDigit) else { return true }
        var numbers = 0
        for label in host.split(separator: dot, omittingEmptySubsequences: false) {
            let isCanonical = label.count == 1 || label.first != UInt8(ascii: "0")
            guard (1...3).contains(label.count), label.allSatisfy(isDigit), isCanonical,
                label.reduce(0, { $0 * 10 + Int($1 - 48) }) < 256
            else { return false }
            numbers += 1
        }
        return numbers == 4
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- 48 < 10 }

    /// The one spelling of an IPv6 literal (RFC 5952); nil for a text that is none, and for an IPv4 address in this
    /// form, which a rule for that address would not see. One with a zone stays as it is.
    static func ipv6(_ literal: String) -> String? {
        if literal.contains("%") { return literal }
        var address = in6_addr()
        guard inet_pton(AF_INET6, String(literal.dropFirst().dropLast()), &address) == 1 else { return nil }
        let bytes = withUnsafeBytes(of: address) { Array($0) }
        if bytes[..<10].allSatisfy({ $0 == 0 }), bytes[10] == 0xFF, bytes[11] == 0xFF { return nil }
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(AF_INET6, &address, &text, socklen_t(text.count)) != nil else { return nil }
        return "[\(String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))]"
    }

    /// The canonical form of the beginning of a URL, and its host; nil if no URL begins like this.
    ///
    /// Scheme and host must be complete, the path need not be: `https://example.com/a` is a prefix of
    /// `https://example.com/about`, but `https://example.com` is no prefix of `https://example.com.evil.example/`. If
    /// there is only a scheme, the host is nil.
    static func prefix(_ text: String) -> (text: String, host: String?)? {
        let lowercased = text.lowercased()
        if "http://".hasPrefix(lowercased) || "https://".hasPrefix(lowercased) { return (lowercased, nil) }
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
        bytes.flatMap { byte -> [UInt8] in
            let isAllowed = byte > 0x20 && byte < 0x7F && !"\"<>\\^`{|}".utf8.contains(byte)
            if isAllowed { return [byte] }
            let digits = String(byte, radix: 16, uppercase: true)
            return Array("%\(digits.utf8.count == 1 ? "0" : "")\(digits)".utf8)
        }
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
