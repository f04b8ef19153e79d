import Foundation

extension Asked {
    /// How much a recorded request is like another one, for a reader who looks for his mistake.
    func likeness(to other: Asked) -> Int {
        let (own, others) = (URLComponents(string: url), URLComponents(string: other.url))
        var points = method == other.method ? 2 : 0
        if own?.host == others?.host { points += 2 }
        if own?.host == others?.host, own?.path == others?.path { points += 4 }
        if url == other.url { points += 1 }
        if body == other.body { points += 1 }
        return points
    }

    /// What is different in a request, in words.
    func differences(of other: Asked) -> [String] {
        var found: [String] = []
        if method != other.method { found.append("the method is \(other.method), recorded is \(method)") }
        if url != other.url { found += Self.differences(between: other.url, recorded: url) }
        if body != other.body { found.append(Self.difference(between: other.body, recorded: body)) }
        return found
    }

    private static func differences(between text: String, recorded: String) -> [String] {
        guard var new = URLComponents(string: text), var old = URLComponents(string: recorded) else {
            return ["the URL is \(text), recorded is \(recorded)"]
        }
        let (newItems, oldItems) = (new.queryItems ?? [], old.queryItems ?? [])
        (new.query, old.query) = (nil, nil)
        guard new == old else { return ["the URL is \(text), recorded is \(recorded)"] }
        let names = Set(newItems.map(\.name)).union(oldItems.map(\.name)).sorted()
        let found = names.compactMap { name -> String? in
            let (values, before) = (newItems.filter { $0.name == name }, oldItems.filter { $0.name == name })
            return values == before ? nil : "the query item \(name) is \(values.text), recorded is \(before.text)"
        }
        return found.isEmpty ? ["the query items have another order"] : found
    }

    private static func difference(between body: Content?, recorded: Content?) -> String {
        guard let body else { return "there is no body, recorded is one" }
        guard let recorded else { return "there is a body, recorded is none" }
        if let new = body.json, let old = recorded.json, let text = difference(between: new, recorded: old, at: "") {
            return "in the body, \(text)"
        }
        return "the body is \(shown(body)), recorded is \(shown(recorded))"
    }

    /// The first place where two values of JSON differ, such as `messages[0].content`.
    private static func difference(between new: Any?, recorded old: Any?, at path: String) -> String? {
        if let new = new as? [String: Any], let old = old as? [String: Any] {
            for name in Set(new.keys).union(old.keys).sorted() {
                let path = path.isEmpty ? name : "\(path).\(name)"
                if let text = difference(between: new[name], recorded: old[name], at: path) { return text }
            }
            return nil
        }
        if let new = new as? [Any], let old = old as? [Any] {
            for index in 0..<max(new.count, old.count) {
                let values = (index < new.count ? new[index] : nil, index < old.count ? old[index] : nil)
                if let text = difference(between: values.0, recorded: values.1, at: "\(path)[\(index)]") { return text }
            }
            return nil
        }
        let value = { (value: Any?) in value.map { "\"\("\($0)".prefix(60))\"" } ?? "not there" }
        if value(new) == value(old), (new as? String == nil) == (old as? String == nil) { return nil }
        return "\(path.isEmpty ? "the value" : path) is \(value(new)), recorded is \(value(old))"
    }

    private static func shown(_ content: Content) -> String {
        let data = content.data
        let text = String(decoding: data.prefix(60), as: UTF8.self)
        return "\"\(text)\"\(data.count > 60 ? "… (\(data.count) bytes)" : "")"
    }
}

extension [URLQueryItem] {
    fileprivate var text: String { isEmpty ? "not there" : map { "\"\($0.value ?? "")\"" }.joined(separator: ", ") }
}
