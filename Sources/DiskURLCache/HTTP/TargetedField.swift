/// A field such as `CDN-Cache-Control` (RFC 9213), which governs a response for caches that look for it;
/// `Cache-Control` and `Expires` do not count then.
struct TargetedField {
    let name: String
    let control: CacheControl

    /// The first of the listed fields that has a valid value. Nil: the response's other fields govern (RFC 9213 §2.2).
    init?(in fields: HeaderFields, listed names: [String]) {
        for name in names {
            guard let directives = fields[name].flatMap(Self.directives) else { continue }
            self.name = name
            control = CacheControl(directives: directives)
            return
        }
        return nil
    }

    private static let ofSeconds: Set = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]

    /// A dictionary whose values are those that directives have: integers, strings, tokens, or none (RFC 9213 §2.1). An
    /// empty dictionary, or one with any other value, is invalid.
    private static func directives(_ value: String) -> [CacheControl.Directive]? {
        guard let entries = StructuredField.dictionary(value)?.list, !entries.isEmpty else { return nil }
        var directives: [CacheControl.Directive] = []
        for (name, member) in entries {
            let argument: CacheControl.Argument
            switch (member.value, ofSeconds.contains(name)) {
            case (.integer(let number)?, true) where number >= 0: argument = .value(String(number))
            case (.integer(let number)?, false): argument = .value(String(number))
            case (.string(let text)?, false), (.token(let text)?, false): argument = .value(text)
            case (.boolean(true)?, false): argument = .none
            default: return nil
            }
            directives.append(CacheControl.Directive(name: name, argument: argument))
        }
        return directives
    }
}
