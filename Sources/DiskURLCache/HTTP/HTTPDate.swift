import Foundation

/// The three date forms of RFC 9110 §5.6.7, without `DateFormatter`, which is slow and depends on the locale.
///
/// Upper and lower case make no difference. Whether the day of the week is right is not checked, since the date does
/// not depend on it.
enum HTTPDate {
    /// W and L: short and long names of days; B: of months; D, H, M, S, Y: digits of a number; Z: the zone. The second
    /// form of `asctime` is for days of one digit.
    private static let forms = [
        "W, DD B YYYY HH:MM:SS Z", "L, DD-B-YY HH:MM:SS Z", "W B DD HH:MM:SS YYYY", "W B  D HH:MM:SS YYYY",
    ].map { Array($0.utf8) }

    /// - Parameter reference: about now; RFC 850 dates have two digits of the year, and are at most 50 years ahead.
    static func parse(_ value: String, reference: Date) -> Date? {
        value.withBytes { bytes in
            // The longest form is "Wednesday, 09-Nov-94 08:49:37 GMT"; a far longer text is no date.
            let text = bytes[FieldSyntax.trimming(0..<bytes.count, of: bytes)].prefix(64)
            for form in forms {
                if let seconds = seconds(of: text, in: form, reference: reference) {
                    return Date(timeIntervalSince1970: TimeInterval(seconds))
                }
            }
            return nil
        }
    }

    /// The oldest date of a field that may have come several times: its values then arrive joined by commas, and most
    /// dates have a comma, too. Nil without a valid date.
    static func oldest(_ value: String, reference: Date) -> Date? {
        if let date = parse(value, reference: reference) { return date }
        var oldest: Date?
        // Enough for four dates: no server sends more, and a hostile one must not cost time.
        var rest = value.split(separator: ",", maxSplits: 8, omittingEmptySubsequences: false).prefix(8)
        while let part = rest.popFirst() {
            var date = parse(String(part), reference: reference)
            if date == nil, let next = rest.first {
                date = parse("\(part),\(next)", reference: reference)
                if date != nil { rest.removeFirst() }
            }
            if let date { oldest = min(date, oldest ?? date) }
        }
        return oldest
    }

    /// The preferred form (IMF-fixdate).
    static func format(_ date: Date) -> String {
        // The form has four digits for the year.
        let seconds = min(max(date.timeIntervalSince1970.wholeSeconds, -62_167_219_200), 253_402_300_799)
        var time = time_t(clamping: seconds)
        var parts = tm()
        gmtime_r(&time, &parts)
        // The system's weeks begin on Sunday.
        let weekday = shortDays[Int(parts.tm_wday + 6) % 7]
        let day = padded(parts.tm_mday, to: 2)
        let month = months[Int(parts.tm_mon)]
        let year = padded(1900 + parts.tm_year, to: 4)
        let hour = padded(parts.tm_hour, to: 2)
        let minute = padded(parts.tm_min, to: 2)
        let second = padded(parts.tm_sec, to: 2)
        return "\(weekday), \(day) \(month) \(year) \(hour):\(minute):\(second) GMT"
    }

    private static func padded(_ number: Int32, to width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
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

extension HTTPDate {
    private static let shortDays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// The words of dates as numbers (`number(of:)`).
    private static let shortDayNumbers = shortDays.map(number)
    private static let longDayNumbers = [
        "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
    ].map(number)
    private static let monthNumbers = months.map(number)
    private static let zoneNumbers = [number(of: "GMT")]

    /// A word of at most twelve letters as a number: five bits for each letter, the same for upper and lower case.
    private static func number(of word: String) -> UInt64 {
        var number: UInt64 = 0
        for letter in word.utf8 { number = number << 5 | UInt64(letter & 31) }
        return number
    }

    /// Reads a date from left to right; nil if it does not have this form exactly.
    private static func seconds(of text: Text, in form: [UInt8], reference: Date) -> Int64? {
        var rest = text
        var month = 0
        var day = 0
        var hour = 0
        var minute = 0
        var second = 0
        var year = 0
        var yearDigits = 0
        for symbol in form {
            switch symbol {
            case UInt8(ascii: "W"): guard word(&rest, of: shortDayNumbers) != nil else { return nil }
            case UInt8(ascii: "L"): guard word(&rest, of: longDayNumbers) != nil else { return nil }
            case UInt8(ascii: "Z"): guard word(&rest, of: zoneNumbers) != nil else { return nil }
            case UInt8(ascii: "B"):
                guard let index = word(&rest, of: monthNumbers) else { return nil }
                month = index + 1
            case UInt8(ascii: "D"): guard digit(&rest, of: &day) else { return nil }
            case UInt8(ascii: "H"): guard digit(&rest, of: &hour) else { return nil }
            case UInt8(ascii: "M"): guard digit(&rest, of: &minute) else { return nil }
            case UInt8(ascii: "S"): guard digit(&rest, of: &second) else { return nil }
            case UInt8(ascii: "Y"):
                guard digit(&rest, of: &year) else { return nil }
                yearDigits += 1
            default: guard rest.popFirst() == symbol else { return nil }
            }
        }
        if yearDigits == 2 {
            // RFC 9110 §5.6.7: a year more than 50 years ahead means the latest year in the past with these two digits.
            let thisYear = Int(1970 + reference.timeIntervalSince1970.wholeSeconds / 31_556_952)
            year += thisYear - thisYear % 100
            if year > thisYear + 50 {
                year -= 100
            } else if year < thisYear - 49 {
                year += 100
            }
        }
        // A leap second (60) is allowed by the grammar.
        guard rest.isEmpty, hour < 24, minute < 60, second <= 60 else { return nil }
        guard let days = days(year: year, month: month, day: day) else { return nil }
        return Int64(days) * 86_400 + Int64(hour * 3600 + minute * 60 + second)
    }

    /// The bytes of a date, in place.
    private typealias Text = Slice<UnsafeBufferPointer<UInt8>>

    private static func digit(_ rest: inout Text, of number: inout Int) -> Bool {
        guard let byte = rest.popFirst(), byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return false }
        number = number * 10 + Int(byte - UInt8(ascii: "0"))
        return true
    }

    /// Takes the letters at the front; gives the index of the word that they spell, nil if they spell none.
    private static func word(_ rest: inout Text, of words: [UInt64]) -> Int? {
        var spelled: UInt64 = 0
        var count = 0
        while let byte = rest.first, (byte | 0x20) &- 97 < 26 {
            spelled = spelled << 5 | UInt64(byte & 31)
            count += 1
            rest.removeFirst()
        }
        return count <= 12 ? words.firstIndex(of: spelled) : nil
    }
}

extension TimeInterval {
    /// Rounded down, and limited to far more than years of four digits: a time read from disk may be any number.
    var wholeSeconds: Int64 {
        let bound = 1e12
        return isNaN ? 0 : Int64(Swift.min(Swift.max(rounded(.down), -bound), bound))
    }
}
