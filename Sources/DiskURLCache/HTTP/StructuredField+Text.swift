// Items as they are written (RFC 9651 §4.1).

extension StructuredField {
    /// The bounds of an integer (§3.3.1): fifteen digits.
    static let greatestInteger: Int64 = 999_999_999_999_999

    static func text(ofInteger number: Int64) -> String {
        String(min(max(number, -greatestInteger), greatestInteger))
    }

    /// A token when the text is one, a string otherwise; characters that a string cannot hold are left out.
    static func text(ofTokenOrString text: String) -> String {
        if case .token(text)? = item(text)?.value { return text }
        var result = "\""
        for scalar in text.unicodeScalars where (0x20...0x7E).contains(scalar.value) {
            if scalar == "\"" || scalar == "\\" { result.append("\\") }
            result.unicodeScalars.append(scalar)
        }
        return result + "\""
    }
}
