import Foundation

/// How old a stored response is (RFC 9111 §4.2.3).
enum Age {
    /// `current_age` in seconds. Never negative, the clock set back or not; never above `greatestDeltaSeconds`.
    static func current(of facts: ReuseFacts, now: Date) -> Int64 {
        let residentTime = max(0, now.timeIntervalSince(facts.responseTime).wholeSeconds)
        return min(facts.initialAge.addingSaturated(residentTime), FieldSyntax.greatestDeltaSeconds)
    }

    /// `corrected_initial_age`: what the response was old when it arrived.
    static func correctedInitialAge(of response: StoredResponse) -> Int64 {
        let responseDelay = max(0, response.responseTime.timeIntervalSince(response.requestTime).wholeSeconds)
        let correctedAgeValue = value(of: response.fields).addingSaturated(responseDelay)
        guard let date = response.fields["Date"].flatMap({ HTTPDate.parse($0, reference: response.responseTime) })
        else { return correctedAgeValue }
        let apparentAge = max(0, response.responseTime.timeIntervalSince(date).wholeSeconds)
        return max(apparentAge, correctedAgeValue)
    }

    /// `age_value`: the first member of the `Age` field where that is valid, else 0 (RFC 9111 §5.1).
    static func value(of fields: HeaderFields) -> Int64 {
        fields["Age"].flatMap { FieldSyntax.members(of: $0).first }.flatMap { FieldSyntax.deltaSeconds($0) } ?? 0
    }
}

extension StoredResponse {
    /// `current_age` in seconds.
    func age(at now: Date) -> Int64 {
        Age.current(of: ReuseFacts(self), now: now)
    }
}
