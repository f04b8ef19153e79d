/// Selection among stored responses (RFC 9111 §4.1), and how `Vary` is read.
extension ConformanceRow {
    static let vary: [ConformanceRow] = [
        .init("vary-match", .optimal, one, .get.sends("Foo: 1").cached),
        .init("vary-no-match", .required, one, .get.sends("Foo: 2").notCached),
        .init("vary-omit-stored", .required, varied("Foo"), .get.sends("Foo: 1").notCached),
        .init("vary-omit", .required, one, .get.notCached),
        .init(
            "vary-invalidate", .optimal, one.body("foo_1"),
            varied("Foo").sends("Foo: 2").body("foo_2").notCached,
            .get.sends("Foo: 1").body("foo_1").cached),
        .init(
            "vary-cache-key", .optimal, one.sends("Other: 2"), .get.sends("Foo: 1", "Other: 3").cached),
        .init("vary-2-match", .optimal, two, .get.sends("Foo: 1", "Bar: abc").cached),
        .init("vary-2-no-match", .required, two, .get.sends("Foo: 2", "Bar: abc").notCached),
        .init("vary-2-match-omit", .required, two, .get.notCached),
        .init("vary-3-match", .optimal, three, .get.sends("Foo: 1", "Bar: abc", "Baz: 789").cached),
        .init("vary-3-no-match", .required, three, .get.sends("Foo: 2", "Bar: abc", "Baz: 789").notCached),
        .init("vary-3-order", .required, three, .get.sends("Foo: 1", "Baz: 789", "Bar: abcde").notCached),
        .init(
            "vary-3-omit", .optimal, varied("Foo, Bar, Baz").sends("Foo: 1", "Baz: 789"),
            .get.sends("Foo: 1", "Baz: 789").cached),
        .init(
            "vary-star", .required, varied("*").sends("Foo: 1", "Baz: 789"),
            .get.sends("Foo: 1", "Baz: 789").notCached),
        .init(
            "vary-normalise-combine", .optimal, varied("Foo").sends("Foo: 1, 2"),
            .get.sends("Foo: 1", "Foo: 2").cached),
        language("order", "de, en"),
        language("case", "eN, De"),
        language("space", " en ,   de"),
        .init(
            "vary-normalise-lang-select", .optimal,
            varied("Accept-Language").sends("Accept-Language: en, de").replies("Content-Language: de"),
            .get.sends("Accept-Language: fr;q=0.5, de;q=1.0").cached),
        .init(
            "vary-normalise-space", .optimal, varied("Foo").sends("Foo: 1,2"),
            .get.sends(.init("Foo", .text(" 1, 2 "))).cached),
    ]

    static let varyParsing: [ConformanceRow] = [
        star("star", "*"),
        star("star-star", "*, *"),
        star("star-star-lines", "*", "*"),
        star("empty-star", ", *"),
        star("empty-star-lines", "", "*"),
        star("star-foo", "*, Foo"),
        star("foo-star", "Foo, *"),
    ]

    private static let one = varied("Foo").sends("Foo: 1")
    private static let two = varied("Foo, Bar").sends("Foo: 1", "Bar: abc")
    private static let three = varied("Foo, Bar, Baz").sends("Foo: 1", "Bar: abc", "Baz: 789")

    private static func varied(_ names: String...) -> ConformanceStep {
        .get.replies(
            ["Cache-Control: max-age=5000", .date("Last-Modified", -3_000), .date("Date", 0)]
                + names.map { .init("Vary", .text($0), isChecked: !$0.contains(",")) })
    }

    private static func language(_ id: String, _ value: String) -> Self {
        Self(
            "vary-normalise-lang-\(id)", .optimal, varied("Accept-Language").sends("Accept-Language: en, de"),
            .get.sends(.init("Accept-Language", .text(value))).cached)
    }

    private static func star(_ id: String, _ lines: String...) -> Self {
        let first = ConformanceStep.get.sends("Foo: 1", "Baz: 789").replies(
            ["Cache-Control: max-age=5000", .date("Last-Modified", -3_000), .date("Date", 0)]
                + lines.map { .unchecked("Vary", $0) })
        return Self("vary-syntax-\(id)", .required, first, .get.sends("Foo: 1", "Baz: 789").notCached)
    }
}
