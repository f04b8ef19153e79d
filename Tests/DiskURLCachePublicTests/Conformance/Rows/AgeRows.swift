/// How `Age` is read (RFC 9111 §5.1): the first value counts, an invalid one does not.
extension ConformanceRow {
    static let ageParsing: [ConformanceRow] = [
        age("nonnumeric", "abc", isReused: true),
        age("negative", "-7200", isReused: true),
        age("float", "7200.0", isReused: true),
        age("large-minus-one", "2147483647", isReused: false),
        age("large", "2147483648", isReused: false),
        age("larger", "2147483649", isReused: false),
        age("suffix", "7200, 0", isReused: false),
        age("prefix", "0, 7200", isReused: true),
        age("suffix-twoline", "7200", "0", isReused: false),
        age("prefix-twoline", "0", "7200", isReused: true),
        age("dup-0", "0, 0", isReused: true),
        age("dup-0-twoline", "0", "0", isReused: true),
        age("dup-old", "3600", "3600", maxAge: 10_000, isReused: true),
        age("parameter", "7200;foo=bar", .check, isReused: false),
        age("numeric-parameter", "7200;foo=111", .check, isReused: false),
    ]

    private static func age(
        _ id: String, _ lines: String..., maxAge: Int = 3_600, isReused: Bool
    ) -> Self {
        age(id, lines, .required, maxAge: maxAge, isReused: isReused)
    }

    private static func age(_ id: String, _ line: String, _ kind: Kind, isReused: Bool) -> Self {
        age(id, [line], kind, maxAge: 3_600, isReused: isReused)
    }

    private static func age(_ id: String, _ lines: [String], _ kind: Kind, maxAge: Int, isReused: Bool) -> Self {
        let fields: [ConformanceField] =
            [.date("Date", 0), .init("Cache-Control", .text("max-age=\(maxAge)"))]
            + lines.map { .unchecked("Age", $0) }
        return Self("age-parse-\(id)", kind, .get.replies(fields).pausing, isReused ? .get.cached : .get.notCached)
    }
}
