import Foundation

/// How old a stored response is (RFC 9111 §4.2.3).
package enum Age {
    /// `current_age` in seconds, from 0 to `greatestDeltaSeconds`.
    ///
    /// A response that arrived "later than now" was stored before the clock was set back. Its age is not known, so it
    /// gets the greatest one: it is revalidated, and no stale window allows its use.
    static func current(of facts: ReuseFacts, now: Date) -> Int64 {
        guard !isUnknown(facts, now: now) else { return FieldSyntax.greatestDeltaSeconds }
        let residentTime = max(0, now.timeIntervalSince(facts.responseTime).wholeSeconds)
        return min(facts.ageOnArrival.corrected.addingSaturated(residentTime), FieldSyntax.greatestDeltaSeconds)
    }

    /// `age_value`: the first member of the `Age` field; nil if there is none, or if it is invalid (RFC 9111 §5.1).
    package static func value(in fields: HeaderFields) -> Int64? {
        fields["Age"].flatMap { FieldSyntax.members(of: $0).first }.flatMap { FieldSyntax.deltaSeconds($0) }
    }

    /// The seconds by which clocks may differ in normal use: after a correction by NTP, or between two machines with
    /// the same store.
    static let clockTolerance: TimeInterval = 10

    /// Whether the clock was set back since the response arrived.
    package static func isUnknown(_ facts: ReuseFacts, now: Date) -> Bool {
        // Written so that a time that is not a number counts as unknown.
        !(now.timeIntervalSince(facts.responseTime) >= -clockTolerance)
    }

    /// How old a response was when it arrived, in seconds.
    package struct OnArrival: Sendable, Equatable {
        /// `age_value`; 0 without a valid one.
        package let value: Int64
        /// `response_delay`
        package let delay: Int64
        /// `apparent_age`; 0 without a valid `Date`.
        package let apparent: Int64

        /// `corrected_initial_age`
        package var corrected: Int64 { max(apparent, value.addingSaturated(delay)) }

        init(of response: StoredResponse) {
            value = Age.value(in: response.fields) ?? 0
            delay = max(0, response.responseTime.timeIntervalSince(response.requestTime).wholeSeconds)
            apparent = max(0, response.responseTime.timeIntervalSince(Freshness.date(of: response)).wholeSeconds)
        }
    }
}
