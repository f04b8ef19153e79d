import Foundation
import Testing

@testable import DiskURLCache

@Suite(.fewAtATime) struct HTTPDateTests {
    /// 2027-01-15
    static let reference = PureCache.start

    @Test(arguments: [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784_111_777),
        ("Sun Nov  6 08:49:37 1994", 784_111_777),
        ("Wed Nov 16 08:49:37 1994", 784_975_777),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
        ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799),
        ("Wed, 31 Dec 1969 23:59:59 GMT", -1),
        ("Tue, 19 Jan 2038 14:14:08 GMT", 2_147_523_248),
        ("Sun, 21 Nov 2286 04:46:39 GMT", 10_000_039_599),
        ("Thu, 18 Aug 2050 02:01:18 GMT", 2_544_400_878),
        ("THU, 18 Aug 2050 02:01:18 GMT", 2_544_400_878),
        ("Thu, 18 AUG 2050 02:01:18 GMT", 2_544_400_878),
        ("Thu, 18 Aug 2050 02:01:18 gMT", 2_544_400_878),
        ("Thursday, 18-Aug-50 02:01:18 GMT", 2_544_400_878),
        ("Thu Aug 18 02:01:18 2050", 2_544_400_878),
        (" Thu, 18 Aug 2050 02:01:18 GMT\t", 2_544_400_878),
        ("Fri, 30 Jun 2017 23:59:60 GMT", 1_498_867_200),
    ])
    func threeFormsAreRead(_ text: String, _ seconds: Int) {
        let date = HTTPDate.parse(text, reference: Self.reference)
        #expect(date == Date(timeIntervalSince1970: TimeInterval(seconds)))
    }

    /// Among them all that cache-tests `freshness-expires-invalid-*` list.
    @Test(arguments: [
        "", "0", "-1", "foo", "Thu, 18 Aug 2050 02:01:18 UTC", "Thu, 18 Aug 2050 02:01:18 AEST",
        "Thu, 18 Aug 50 02:01:18 GMT", "Thu 18 Aug 2050 02:01:18 GMT", "Thu, 18  Aug  2050 02:01:18 GMT",
        "Thu, 18-Aug-2050 02:01:18 GMT", "Thu, 18 Aug 2050 02.01.18 GMT", "Thu, 18 Aug 2050 2:01:18 GMT",
        "Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:19 GMT", "Thu, 18 Aug 2050 02:01:18",
        "Thu, 18 Aug 2050 02:01:18 GMT+1", "Thu, 18 Aug 2050 24:01:18 GMT", "Thu, 18 Aug 2050 02:60:18 GMT",
        "Thu, 18 Aug 2050 02:01:61 GMT", "Thu, 29 Feb 2051 02:01:18 GMT", "Thu, 29 Feb 2100 02:01:18 GMT",
        "Thu, 00 Aug 2050 02:01:18 GMT", "Thu, 31 Sep 2050 02:01:18 GMT", "Thu, 18 Foo 2050 02:01:18 GMT",
        "Foo, 18 Aug 2050 02:01:18 GMT", "18 Aug 2050 02:01:18 GMT", "Thu, 8 Aug 2050 02:01:18 GMT",
        "Thu Aug 8 02:01:18 2050", "Thu Aug  8 02:01:18 2050 GMT", "Thursday, 18 Aug 2050 02:01:18 GMT",
        "2050-08-18T02:01:18Z", "Thu, 18 Aug 2050 02:01:18 GMT\0", "Thu, 18 Aug 20500 02:01:18 GMT",
    ])
    func anythingElseIsNoDate(_ text: String) {
        #expect(HTTPDate.parse(text, reference: Self.reference) == nil)
    }

    @Test(arguments: [
        ("Jan", 31), ("Feb", 28), ("Mar", 31), ("Apr", 30), ("May", 31), ("Jun", 30), ("Jul", 31), ("Aug", 31),
        ("Sep", 30), ("Oct", 31), ("Nov", 30), ("Dec", 31),
    ])
    func aMonthHasItsDays(_ month: String, _ count: Int) {
        for day in 28...32 {
            let date = HTTPDate.parse("Thu, \(day) \(month) 2051 02:01:18 GMT", reference: Self.reference)
            #expect((date != nil) == (day <= count), "\(day)")
        }
    }

    @Test(arguments: [(77, 2077), (78, 1978), (99, 1999), (0, 2000), (27, 2027)])
    func twoDigitYearIsAtMostFiftyYearsAhead(_ short: Int, _ year: Int) throws {
        let text = "Friday, 01-Jan-\(short < 10 ? "0" : "")\(short) 00:00:00 GMT"
        let days = try #require(HTTPDate.days(year: year, month: 1, day: 1))
        let date = HTTPDate.parse(text, reference: Self.reference)
        #expect(date == Date(timeIntervalSince1970: TimeInterval(days * 86_400)))
    }

    @Test func dayCountAgreesWithTheCalendar() throws {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(secondsFromGMT: 0))
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            // Foundation's Gregorian calendar is Julian before 1582; dates of HTTP never are.
            let days = Int.random(in: -140_000...2_900_000, using: &generator)
            let parts = calendar.dateComponents(
                [.year, .month, .day], from: Date(timeIntervalSince1970: TimeInterval(days) * 86_400))
            let counted = HTTPDate.days(year: parts.year ?? 0, month: parts.month ?? 0, day: parts.day ?? 0)
            #expect(counted == days)
        }
    }

    @Test func whatIsWrittenIsReadAgain() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let seconds = Int.random(in: -62_167_219_200...253_402_300_799, using: &generator)
            let date = Date(timeIntervalSince1970: TimeInterval(seconds))
            #expect(HTTPDate.parse(HTTPDate.format(date), reference: Self.reference) == date)
        }
    }

    @Test(arguments: [
        (784_111_777.0, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (-1, "Wed, 31 Dec 1969 23:59:59 GMT"), (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
        (1e300, "Fri, 31 Dec 9999 23:59:59 GMT"), (-1e300, "Sat, 01 Jan 0000 00:00:00 GMT"),
        (.nan, "Thu, 01 Jan 1970 00:00:00 GMT"), (1_800_000_000.9, "Fri, 15 Jan 2027 08:00:00 GMT"),
    ])
    func dateIsWrittenInThePreferredForm(_ seconds: Double, _ text: String) {
        #expect(HTTPDate.format(Date(timeIntervalSince1970: seconds)) == text)
    }
}
