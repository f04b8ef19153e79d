import DiskURLCache
import DiskURLCacheTesting
import Foundation
import Testing

/// Times in settings are written in the unit that suits them, and all mean seconds.
struct TimeSpanTests {
    @Test(
        arguments: [
            (60, 60), (.seconds(1.5), 1.5), (.seconds(2), 2), (.minutes(3), 180), (.hours(2), 7_200),
            (.days(7), 604_800),
        ] as [(DiskURLCache.TimeSpan, TimeInterval)])
    func eachUnitIsANumberOfSeconds(_ time: DiskURLCache.TimeSpan, _ seconds: TimeInterval) {
        let clock = DiskURLCache.TestClock(date: Date(timeIntervalSinceReferenceDate: 0))
        clock.advance(by: time)
        #expect(clock.date.timeIntervalSinceReferenceDate == seconds)
    }

    @Test func aCountMayBeAWholeNumberOfTheApp() {
        let count = 2
        let times: [DiskURLCache.TimeSpan] = [.seconds(count), .minutes(count), .hours(count), .days(count)]
        #expect(times == [2, 120, 7_200, 172_800])
    }

    @Test func aDurationIsTakenWhereTheSystemHasIt() {
        #expect(DiskURLCache.TimeSpan(.milliseconds(1_500)) == .seconds(1.5))
        #expect(DiskURLCache.TimeSpan(.seconds(-3)) == -3)
    }

    @Test func aTimePrintsItsSeconds() {
        #expect("\(DiskURLCache.TimeSpan.days(7))" == "604800 s" && "\(DiskURLCache.TimeSpan.seconds(0.5))" == "0.5 s")
        #expect("\(DiskURLCache.TimeSpan.seconds(.infinity))" == "inf s")
    }
}
