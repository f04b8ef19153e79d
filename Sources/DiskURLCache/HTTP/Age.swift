import Foundation

/// How old a stored response is (RFC 9111 §4.2.3).
enum Age {
    /// `current_age` in seconds. Never negative, even if the clock was set back; never above `greatestDeltaSeconds`.
    static func current(of facts: ReuseFacts, now: Date) -> Int64 {
        let residentTime = max(0, now.timeIntervalSince(facts.responseTime).wholeSeconds)
        return min(facts.ageOnArrival.corrected.addingSaturated(residentTime), FieldSyntax.greatestDeltaSeconds)
    }

    /// How old a response was when it arrived, in seconds.
    struct OnArrival: Sendable, Equatable {
        /// `age_value`: the first member of the `Age` field when that is valid, 0 otherwise (RFC 9111 §5.1).
        let value: Int64
        /// `response_delay`
        let delay: Int64
        /// `apparent_age`; 0 without a valid `Date`.
        let apparent: Int64

        /// `corrected_initial_age`
        var corrected: Int64 { max(apparent, value.addingSaturated(delay)) }

        init(of response: StoredResponse) {
            let first = response.fields["Age"].flatMap { FieldSyntax.members(of: $0).first }
            value = first.flatMap { FieldSyntax.deltaSeconds($0) } ?? 0
            delay = max(0, response.responseTime.timeIntervalSince(response.requestTime).wholeSeconds)
            apparent = max(0, response.responseTime.timeIntervalSince(Freshness.date(of: response)).wholeSeconds)
        }
    }
}
