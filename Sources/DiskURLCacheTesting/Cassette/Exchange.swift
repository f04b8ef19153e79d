import DiskURLCache
import DiskURLCacheAdapters
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A recorded request with its answer: the form of a cassette's file.
struct Exchange: Codable {
    let asked: Asked
    let given: Given
}

/// What a request is recognised by.
struct Asked: Codable, Hashable {
    let method: String
    let url: String
    let body: Content?

    init(_ request: DiskURLCache.Request, _ secrets: Secrets) {
        method = request.method
        url = secrets.withheld(inURL: request.url)
        body = request.body.flatMap {
            $0.isEmpty ? nil : Content(secrets.withheld(in: $0, of: request["Content-Type"]))
        }
    }

    /// Words of the URL, for the name of the file.
    var fileName: String {
        let words = url.split { !($0.isASCII && ($0.isLetter || $0.isNumber || $0 == ".")) }.dropFirst()
        return "\(method) \(words.joined(separator: " ").prefix(80))"
    }
}

struct Given: Codable {
    let status: Int
    /// Each a line, as in HTTP.
    let fields: [String]
    let body: Content?

    /// - Parameter secrets: those that are left out; nil for the program itself.
    init(_ response: HTTPURLResponse, _ body: Data, _ secrets: Secrets?) {
        status = response.statusCode
        // Without a type it is no form, as a request is.
        let type = response.value(forHTTPHeaderField: "Content-Type") ?? ""
        self.body = body.isEmpty ? nil : Content(secrets?.withheld(in: body, of: type) ?? body)
        fields = response.allHeaderFields.compactMap { name, value -> String? in
            guard let name = name as? String, let value = value as? String else { return nil }
            switch name.lowercased() {
            // Secrets; the time of the record; what was true of the bytes on the network.
            case "set-cookie", "set-cookie2", "authentication-info", "proxy-authentication-info", "age", "date",
                "connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding":
                return nil
            case "location", "content-location": return "\(name): \(secrets?.withheld(inURL: value) ?? value)"
            case "link": return "\(name): \(secrets?.withheld(inLinks: value) ?? value)"
            case "refresh": return "\(name): \(secrets?.withheld(inRefresh: value) ?? value)"
            case let lowercased where secrets?.names.contains(lowercased) == true:
                return "\(name): \(Secrets.withheld)"
            default: return "\(name): \(value)"
            }
        }.sorted()
    }

    var headFields: [(name: String, value: String)] {
        fields.compactMap { line in
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return (String(line[..<colon]), line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces))
        }
    }
}

/// A body: as a text, if it is one.
struct Content: Codable, Hashable {
    private let text: String?
    private let base64: Data?

    init(_ data: Data) {
        // A mark of the byte order at the beginning is lost in a text.
        text = String(data: data, encoding: .utf8).flatMap { Data($0.utf8) == data ? $0 : nil }
        base64 = text == nil ? data : nil
    }

    var data: Data { text.map { Data($0.utf8) } ?? base64 ?? Data() }

    /// A JSON object or array.
    var json: Any? { try? JSONSerialization.jsonObject(with: data) }

    /// The bytes, or those of the same JSON in one order: a program may write the members of an object in another order
    /// each time.
    private var comparable: Data {
        json.flatMap { try? JSONSerialization.data(withJSONObject: $0, options: .sortedKeys) } ?? data
    }

    static func == (left: Content, right: Content) -> Bool { left.comparable == right.comparable }
    func hash(into hasher: inout Hasher) { hasher.combine(comparable) }
}

/// Takes the place of each secret.
struct Secrets {
    let names: Set<String>
    static let withheld = "withheld"

    func withheld(inURL text: String) -> String {
        guard var parts = URLComponents(string: text) else { return text }
        parts.user = nil
        parts.password = nil
        if let query = parts.percentEncodedQuery { parts.percentEncodedQuery = withheld(inItems: query) }
        // Some servers give a token there, with a redirect.
        if let items = parts.percentEncodedFragment { parts.percentEncodedFragment = withheld(inItems: items) }
        return parts.string ?? text
    }

    /// `<URL>; rel=next, …`
    func withheld(inLinks text: String) -> String {
        var result = ""
        var rest = text.startIndex..<text.endIndex
        while let url = text.range(of: "(?<=<)[^>]+", options: .regularExpression, range: rest) {
            result += text[rest.lowerBound..<url.lowerBound] + withheld(inURL: String(text[url]))
            rest = url.upperBound..<text.endIndex
        }
        return result + text[rest]
    }

    /// `5; url="URL"`, where `url=` and the quotes may be missing.
    func withheld(inRefresh text: String) -> String {
        var url = text.drop { !";,".contains($0) }.dropFirst().drop(while: \.isWhitespace)
        let value = url.dropFirst(3).drop(while: \.isWhitespace)
        if url.prefix(3).lowercased() == "url", value.first == "=" {
            url = value.dropFirst().drop { $0.isWhitespace || "\"'".contains($0) }
        }
        return text[..<url.startIndex] + withheld(inURL: String(url))
    }

    func withheld(in body: Data, of type: String?) -> Data {
        // Whatever its type: a request whose program names none is sent as a form.
        if let json = Content(body).json {
            guard let changed = withheld(inJSON: json) else { return body }
            return (try? JSONSerialization.data(withJSONObject: changed, options: .sortedKeys)) ?? Data()
        }
        guard type?.lowercased().hasPrefix("application/x-www-form-urlencoded") ?? true else { return body }
        let text = String(decoding: body, as: UTF8.self)
        let changed = withheld(inItems: text)
        return changed == text ? body : Data(changed.utf8)
    }

    private func withheld(inItems text: String) -> String {
        text.split(separator: "&", omittingEmptySubsequences: false).map { item in
            let name = item.prefix { $0 != "=" }
            let isSecret =
                item.contains("=") && names.contains((name.removingPercentEncoding ?? String(name)).lowercased())
            return isSecret ? "\(name)=\(Self.withheld)" : String(item)
        }.joined(separator: "&")
    }

    /// Each value keeps its kind, so that a replay is decoded as the recording was.
    /// - Parameter isSecret: it is under the name of a secret: its texts become `withheld`, and its numbers 0.
    /// - Returns: nil if there is no secret, so that the bytes stay as they are.
    private func withheld(inJSON value: Any, isSecret: Bool = false) -> Any? {
        if let list = value as? [Any] {
            let changed = list.map { withheld(inJSON: $0, isSecret: isSecret) }
            return changed.contains { $0 != nil } ? zip(changed, list).map { $0 ?? $1 } : nil
        }
        guard var object = value as? [String: Any] else {
            if !isSecret || value is NSNull || value is Bool { return nil }
            return value is String ? Self.withheld : 0
        }
        var isChanged = false
        for (name, member) in object {
            let plain = name.lowercased()
            let isNamed = names.contains(plain) && plain != "key" && plain != "code"
            if let changed = withheld(inJSON: member, isSecret: isSecret || isNamed) {
                object[name] = changed
                isChanged = true
            }
        }
        return isChanged ? object : nil
    }
}
