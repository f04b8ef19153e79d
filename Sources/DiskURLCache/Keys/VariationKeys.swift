// The keys of responses that answer for several spellings of their URLs (No-Vary-Search).
//
// Such a response is stored under a key without those parts of the query that it calls irrelevant. To make that key
// for a request, a cache must know what the responses of the path say: a list under a key of its own tells it. The keys
// hold the number of the list they were made with, so once the list is gone, no lookup can find what it led to: a
// removal that did not find it either can be no wrong answer.

extension RequestKey {
    // No canonical URL has a fragment.
    private static let suffix = "#no-vary-search"

    /// The key of the list for a URL's path.
    static func variationList(of uri: String) -> RequestKey {
        let path = uri.utf8.prefix { $0 != UInt8(ascii: "?") }
        return RequestKey(text: String(Substring(path)) + suffix, uri: nil, isForHead: false)
    }

    /// The key of the list for the path of this key's URL. Nil for a key that does not begin with the URL: of another
    /// method than `GET` and `HEAD`, or one that a closure made.
    package var variationList: RequestKey? { text.hasPrefix(uri) ? Self.variationList(of: uri) : nil }

    /// The keys under which responses for an equivalent of this key's URL may be stored, by the text of the list.
    package func equivalents(listedIn text: String) -> [RequestKey] {
        guard let list = VariationList(text: text) else { return [] }
        return list.variations.map { simplified(by: $0, of: list) }
    }

    /// The key of responses that say this, for requests like the one of this key.
    func simplified(by variation: SearchVariation, of list: VariationList) -> RequestKey {
        let path = Self.variationList(of: uri).text
        let additions = text.utf8.dropFirst(uri.utf8.count)
        let written = uri.firstIndex(of: "?").map { String(uri[uri.index(after: $0)...]) }
        let query = variation.simplified(written)
        // The length keeps the query from imitating what follows.
        let text = "\(path) \(list.number) \(query.utf8.count):\(query)" + String(decoding: additions, as: UTF8.self)
        return RequestKey(text: text, uri: path, isForHead: isForHead)
    }
}

/// What the stored responses of a path say in `No-Vary-Search`: the values, the one that was seen last first.
struct VariationList: Sendable, Equatable {
    /// A list that is made anew gets a new number.
    let number: UInt64
    /// Values of the field.
    private(set) var values: [String]

    /// A server should send one value for a path; with more, the cache may miss (§6 of the draft).
    private static let limit = 4

    init(_ value: String) {
        number = UInt64.random(in: 0...UInt64.max)
        values = [value]
    }

    /// The list with a further value at its front.
    func noting(_ value: String) -> VariationList {
        var list = self
        list.values = Array(([value] + values.filter { $0 != value }).prefix(Self.limit))
        return list
    }

    var variations: [SearchVariation] { values.compactMap { SearchVariation(["No-Vary-Search": $0]) } }

    // As it is stored: the number and the values, one a line. No field's value has a line break.
    var text: String { (["\(number)"] + values).joined(separator: "\n") }

    init?(text: String) {
        let lines = text.split(separator: "\n").map(String.init)
        guard let first = lines.first, let number = UInt64(first) else { return nil }
        self.number = number
        values = Array(lines.dropFirst().prefix(Self.limit))
    }
}
