import Foundation

/// The three date forms of RFC 9110 §5.6.7, without `DateFormatter`, which is slow and depends on the locale.
///
/// Names of days and months and the zone are taken in any case. Whether the day of the week fits the date is not checked:
/// no form needs it to give the time.
enum HTTPDate {
    /// - Parameter reference: about now; RFC 850 dates have two digits of the year, and are at most 50 years ahead.
    static func parse(_ value: String, reference: Date) -> Date? {
        var scanner = DateScanner(FieldSyntax.trimming(Substring(value)))
        guard let seconds = scanner.scan(reference: reference) else { return nil }
        return Date(timeIntervalSince1970: TimeInterval(seconds))
    }

    /// The preferred form (IMF-fixdate).
    static func format(_ date: Date) -> String {
        // The form has four digits for the year.
        let seconds = min(max(date.timeIntervalSince1970.wholeSeconds, -62_167_219_200), 253_402_300_799)
        let time = Int(((seconds % 86_400) + 86_400) % 86_400)
        let days = Int((seconds - Int64(time)) / 86_400)
        let (year, month, day) = civil(days: days)
        // 1970-01-01 was a Thursday.
        let weekday = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"][((days % 7) + 7) % 7]
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let clock = [time / 3600, time / 60 % 60, time % 60].map { padded($0, to: 2) }.joined(separator: ":")
        return "\(weekday), \(padded(day, to: 2)) \(months[month - 1]) \(padded(year, to: 4)) \(clock) GMT"
    }

    private static func padded(_ number: Int, to width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// The reverse of `days(year:month:day:)`, for years of four digits.
    private static func civil(days: Int) -> (year: Int, month: Int, day: Int) {
        func first(_ year: Int, _ month: Int = 1) -> Int { Self.days(year: year, month: month, day: 1) ?? .max }
        // Counted from 0000-01-01; at most a year too late or too early.
        let guess = min((days + 719_528) * 400 / 146_097, 9999)
        let year = first(guess) > days ? guess - 1 : first(guess + 1) <= days ? guess + 1 : guess
        let month = (1...12).last { first(year, $0) <= days } ?? 1
        return (year, month, days - first(year, month) + 1)
    }

    /// Days from 1970-01-01 to a day of the proleptic Gregorian calendar; nil when there is no such day.
    static func days(year: Int, month: Int, day: Int) -> Int? {
        guard (0...9999).contains(year), (1...12).contains(month), day >= 1 else { return nil }
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard day <= lengths[month - 1] else { return nil }
        // Years are counted from March, so that the leap day is the last day of its year.
        let shifted = month > 2 ? year : year - 1
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
        // 719,468 days lie between 0000-03-01 and 1970-01-01.
        return era * 146_097 + dayOfEra - 719_468
    }
}

/// Reads one date from left to right; each step either takes exactly what the form has there, or fails.
private struct DateScanner {
    private static let shortDays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    private static let longDays = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
    private static let months = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ]

    private let bytes: [UInt8]
    private var position = 0

    init(_ text: Substring) {
        // The longest form is "Wednesday, 09-Nov-94 08:49:37 GMT"; a far longer text is no date.
        bytes = Array(text.utf8.prefix(64))
    }

    mutating func scan(reference: Date) -> Int64? {
        let name = word()
        let isLong = Self.longDays.contains(name)
        guard isLong || Self.shortDays.contains(name) else { return nil }
        let seconds = isLong ? rfc850(reference: reference) : take(",") ? imfFixdate() : asctime()
        return position == bytes.count ? seconds : nil
    }

    /// `Sun, 06 Nov 1994 08:49:37 GMT`
    private mutating func imfFixdate() -> Int64? {
        guard take(" "), let day = digits(2), take(" "), let month = month(), take(" "), let year = digits(4),
            take(" "), let time = timeOfDay(), zone()
        else { return nil }
        return seconds(year, month, day, time)
    }

    /// `Sunday, 06-Nov-94 08:49:37 GMT`
    private mutating func rfc850(reference: Date) -> Int64? {
        guard take(","), take(" "), let day = digits(2), take("-"), let month = month(), take("-"),
            let shortYear = digits(2), take(" "), let time = timeOfDay(), zone()
        else { return nil }
        let today = reference.timeIntervalSince1970.wholeSeconds
        // RFC 9110 §5.6.7: a year more than 50 years ahead means the latest year in the past with these two digits.
        let thisYear = Int(1970 + today / 31_556_952)
        var year = thisYear - thisYear % 100 + shortYear
        if year > thisYear + 50 { year -= 100 }
        if year < thisYear - 49 { year += 100 }
        return seconds(year, month, day, time)
    }

    /// `Sun Nov  6 08:49:37 1994`
    private mutating func asctime() -> Int64? {
        guard take(" "), let month = month(), take(" "), let day = take(" ") ? digits(1) : digits(2), take(" "),
            let time = timeOfDay(), take(" "), let year = digits(4)
        else { return nil }
        return seconds(year, month, day, time)
    }

    private func seconds(_ year: Int, _ month: Int, _ day: Int, _ time: Int) -> Int64? {
        HTTPDate.days(year: year, month: month, day: day).map { Int64($0) * 86_400 + Int64(time) }
    }

    /// `08:49:37`, as seconds. A leap second (60) is allowed by the grammar.
    private mutating func timeOfDay() -> Int? {
        guard let hour = digits(2), hour < 24, take(":"), let minute = digits(2), minute < 60, take(":"),
            let second = digits(2), second <= 60
        else { return nil }
        return hour * 3600 + minute * 60 + second
    }

    private mutating func zone() -> Bool {
        take(" ") && word() == "gmt"
    }

    private mutating func month() -> Int? {
        Self.months.firstIndex(of: word()).map { $0 + 1 }
    }

    private mutating func digits(_ count: Int) -> Int? {
        guard position + count <= bytes.count else { return nil }
        var value = 0
        for byte in bytes[position..<position + count] {
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
            value = value * 10 + Int(byte - UInt8(ascii: "0"))
        }
        position += count
        return value
    }

    /// Letters up to the next other byte, in lower case.
    private mutating func word() -> String {
        let start = position
        while position < bytes.count, (bytes[position] | 0x20) &- 97 < 26 { position += 1 }
        return String(decoding: bytes[start..<position].map { $0 | 0x20 }, as: UTF8.self)
    }

    private mutating func take(_ character: Unicode.Scalar) -> Bool {
        guard position < bytes.count, bytes[position] == UInt8(ascii: character) else { return false }
        position += 1
        return true
    }
}

extension TimeInterval {
    /// Rounded down; bounded far beyond any date of four digits, since times from a disk may be anything.
    var wholeSeconds: Int64 {
        let bound = 1e12
        return isNaN ? 0 : Int64(Swift.min(Swift.max(rounded(.down), -bound), bound))
    }
}
