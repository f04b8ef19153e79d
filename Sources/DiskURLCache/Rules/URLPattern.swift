import Foundation

/// A pattern for whole URLs in their canonical form, in which `*` stands for any characters.
struct URLPattern: Sendable {
    /// The pattern, its literal parts in canonical form.
    let text: String
    /// The pattern in its possible forms, one of which has to match. There are two if the text before the first slash
    /// may belong to the host, which is in lower case, or to the path.
    private let forms: [[UInt8]]

    func matches(_ canonicalURL: String) -> Bool {
        canonicalURL.withBytes { bytes in forms.contains { Glob.matches($0, bytes) } }
    }

    private init(_ forms: [String]) {
        text = forms[0]
        self.forms = forms.map { Array($0.utf8) }
    }

    /// Why no canonical URL can match a pattern. Such a pattern is reported as an error instead of being ignored.
    struct Problem: Error {
        var text: String

        init(_ text: String) { self.text = text }
    }

    /// A pattern as an app writes it.
    init(_ written: String) throws(Problem) {
        if written.isEmpty { throw Problem("the URL pattern is empty; use Match.all for every request.") }
        if written.contains("#") {
            throw Problem("URLs are compared without their fragments; leave out what follows the \"#\".")
        }
        let end = written.firstIndex { $0 == "/" || $0 == "?" } ?? written.endIndex
        let head = written[..<end]
        let rest = written[end...]
        if head.hasSuffix(":"), rest.hasPrefix("//") {
            let scheme = head.dropLast().lowercased()
            self.init(try Self.absolute(scheme: scheme, rest.dropFirst(2), of: written))
            return
        }
        let literal = head.prefix { $0 != "*" }.lowercased()
        guard head.contains("*"), ["http://", "https://"].contains(where: { $0.hasPrefix(literal) }) else {
            throw Problem(
                "no URL matches \(written.quotedWithoutCredentials): a URL begins with its scheme; write \"https://example.com/path\" or \"*/path\"."
            )
        }
        let tail = try Self.canonicalTail(rest)
        // The part may end a host, or begin in a path.
        let asPath = try Self.canonicalTail(head) + tail
        let asHost = (try? Self.asciiLabels(head.lowercased())).map { $0 + tail } ?? asPath
        let forms = rest.isEmpty || asHost == asPath ? [asPath] : [asPath, asHost]
        // A bracket may be that of a host.
        let asLiteral = forms.map {
            $0.replacingOccurrences(of: "%5B", with: "[").replacingOccurrences(of: "%5D", with: "]")
        }
        let known = forms + asLiteral.filter { !forms.contains($0) }
        self.init(
            known
                + Self.asAuthority(head, rest, of: written).filter { form in
                    !known.contains { Glob.matches($0.utf8, form.utf8) }
                })
    }

    /// The forms of a pattern whose star may stand for the scheme, so that a host follows, perhaps with a port. An `@`
    /// may be one of a path or a query, unless slashes come before it.
    private static func asAuthority(_ head: Substring, _ rest: Substring, of written: String) -> [String] {
        guard head.hasPrefix("*"), rest.hasPrefix("/"), !head.contains("@") else { return [] }
        let authority = head == "*" && rest.hasPrefix("//") ? rest.dropFirst(2) : written[...]
        let forms = (try? absolute(scheme: "*", authority, of: written)) ?? []
        // What was cut off may have been all that such a pattern says.
        return forms.filter { form in
            let host = form.range(of: "://").map { form[$0.upperBound...].prefix { $0 != "/" } } ?? ""
            return host.contains { $0 != "*" }
        }
    }

    /// A host of a pattern in the letters of URLs. A label with a star that is not all ASCII cannot be written so:
    /// which letters it has would depend on what the star stands for.
    private static func asciiLabels(_ host: String) throws(Problem) -> String {
        var labels: [String] = []
        for label in host.split(separator: ".", omittingEmptySubsequences: false) {
            let isPlain = label.utf8.allSatisfy { $0 < 0x80 && $0 != UInt8(ascii: "%") }
            var ascii: String?
            if isPlain {
                ascii = String(label)
            } else if !label.contains("*") {
                ascii = URLCanonicalizer.host(String(label))
            }
            guard let ascii else {
                throw Problem(
                    "\"\(label)\" is not the label of a host; write international labels whole, as in \"*.bücher.example\"."
                )
            }
            labels.append(ascii)
        }
        return labels.joined(separator: ".")
    }

    /// - Parameter rest: the text after the two slashes.
    /// - Returns: two forms if the port may be one that the scheme implies.
    private static func absolute(
        scheme: String, _ rest: Substring, of written: String
    ) throws(Problem) -> [String] {
        guard ["http", "https"].contains(where: { Glob.matches(scheme.utf8, $0.utf8) }) else {
            throw Problem("no URL matches \(written.quotedWithoutCredentials): only http and https are cached.")
        }
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        var host = rest[..<end].lowercased()
        if let at = host.lastIndex(of: "@") {
            host = String(host[host.index(after: at)...])
        }
        host = String(decoding: URLCanonicalizer.normalizedPercentEncoding(Array(host.utf8)), as: UTF8.self)
        var port = ""
        // An IPv6 literal contains colons; the port's colon comes after the bracket.
        let isCut = host.hasPrefix("[") && !host.contains("]")
        if !isCut, let colon = host.lastIndex(of: ":"), !host[colon...].contains("]") {
            port = String(host[host.index(after: colon)...])
            host = String(host[..<colon])
            // No request can be sent to port 0.
            if !port.isEmpty, port.utf8.allSatisfy({ $0 == UInt8(ascii: "0") }) { host = "" }
            if port.utf8.allSatisfy({ $0 &- 48 < 10 }) { port = String(port.drop { $0 == "0" }) }
        }
        let isPlain = host.utf8.allSatisfy { $0 < 0x80 && $0 != UInt8(ascii: "%") }
        if host.hasPrefix("["), !host.contains("*") {
            host = URLCanonicalizer.ipv6(host) ?? ""
        } else if !isPlain, !host.hasPrefix("[") {
            host = try asciiLabels(host)
        }
        if host.hasSuffix(".") { host.removeLast() }
        guard !host.isEmpty, (host + port).utf8.allSatisfy({ $0 > 0x20 && $0 < 0x80 }) else {
            throw Problem(
                "no URL matches \(written.quotedWithoutCredentials): its host is missing, or is none.")
        }
        /// A canonical URL has a path. A star at the end of the authority may match it.
        func form(_ scheme: String, _ authority: String) throws(Problem) -> String {
            let hasPath = rest[end...].hasPrefix("/") || authority.hasSuffix("*")
            return "\(scheme)://\(authority)\(try canonicalTail(hasPath ? rest[end...] : "/" + rest[end...]))"
        }
        var forms = [try form(scheme, port.isEmpty ? host : host + ":" + port)]
        let isWritten = scheme == "http" || scheme == "https"
        for (name, number) in [("http", "80"), ("https", "443")] where Glob.matches(scheme.utf8, name.utf8) {
            if port == number {
                forms.append(try form(name, host))
            } else if isWritten, Glob.matches(port.utf8, number.utf8) {
                // A canonical URL does not have this port. What follows a star at the end is any path.
                let isAnyPath = port.hasSuffix("*") && !rest[end...].hasPrefix("/")
                forms.append(try form(name, isAnyPath ? host + "/*" : host))
            }
        }
        return isWritten && !port.contains("*") ? forms.suffix(1) : forms
    }

    /// Path and query of a pattern in canonical form. Characters that no URL can hold are escaped, as Foundation does
    /// it.
    static func canonicalTail(_ tail: Substring) throws(Problem) -> String {
        let escaped = URLCanonicalizer.escaped(tail.utf8)
        let query = escaped.firstIndex(of: UInt8(ascii: "?")) ?? escaped.endIndex
        let path = URLCanonicalizer.normalizedPercentEncoding(escaped[..<query])
        let segments = path.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        if segments.contains(where: { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }) {
            throw Problem("a request whose path has a segment \".\" or \"..\" is never cached; leave it out.")
        }
        return String(decoding: path + escaped[query...], as: UTF8.self)
    }
}

/// Text patterns in which `*` stands for any characters.
enum Glob {
    static func matches<Pattern: Collection<UInt8>, Text: Collection<UInt8>>(_ pattern: Pattern, _ text: Text) -> Bool {
        var p = pattern.startIndex
        var t = text.startIndex
        // Where to continue after a mismatch, with the last star matching one byte more. The search is linear except
        // for these retries.
        var retry: (pattern: Pattern.Index, text: Text.Index)?
        while t != text.endIndex {
            if p != pattern.endIndex, pattern[p] == UInt8(ascii: "*") {
                p = pattern.index(after: p)
                retry = (p, t)
            } else if p != pattern.endIndex, pattern[p] == text[t] {
                p = pattern.index(after: p)
                t = text.index(after: t)
            } else if let last = retry {
                retry = (last.pattern, text.index(after: last.text))
                p = last.pattern
                t = text.index(after: last.text)
            } else {
                return false
            }
        }
        return pattern[p...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
