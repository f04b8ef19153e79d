import Foundation
import Testing

@testable import DiskURLCache

/// Until when a storage of an app's own is told that an entry is good for an answer.
@Suite struct UsefulnessTests {
    static let arrival = Date(timeIntervalSinceReferenceDate: 700_000_000)

    struct Row: Sendable, CustomTestStringConvertible {
        var fields: HeaderFields
        /// Seconds after the arrival.
        var end: TimeInterval
        var change: @Sendable (inout CachingOptions) -> Void = { _ in }

        var testDescription: String { "\(fields["Cache-Control"] ?? "none")" }
    }

    static let rows: [Row] = [
        Row(fields: [:], end: 0),
        Row(fields: ["Cache-Control": "max-age=100"], end: 100),
        Row(fields: ["Cache-Control": "max-age=100", "Age": "40"], end: 60),
        Row(fields: ["Cache-Control": "max-age=100", "Age": "400"], end: 0),
        Row(fields: ["Cache-Control": "max-age=100, stale-while-revalidate=20, stale-if-error=30"], end: 130),
        Row(fields: ["Cache-Control": "max-age=100, stale-while-revalidate=50, stale-if-error=30"], end: 150),
        // Already stale when it came, and still within the allowance.
        Row(fields: ["Cache-Control": "max-age=100, stale-if-error=30", "Age": "110"], end: 20),
        Row(fields: ["Cache-Control": "max-age=100, stale-if-error=30, must-revalidate"], end: 100),
        Row(fields: ["Cache-Control": "max-age=100, no-cache, stale-if-error=30"], end: 0),
        Row(fields: ["Cache-Control": "max-age=100"], end: 160) { $0.defaultStaleIfError = 60 },
        Row(fields: ["Cache-Control": "max-age=100"], end: 170) { $0.defaultStaleWhileRevalidate = 70 },
        Row(fields: ["Cache-Control": "max-age=100, s-maxage=10, stale-if-error=30"], end: 130),
        Row(fields: ["Cache-Control": "max-age=100, s-maxage=10, stale-if-error=30"], end: 10) { $0.isShared = true },
        Row(fields: ["Cache-Control": "no-cache"], end: 500) { $0.lifetime = .always(seconds: 500) },
        Row(fields: [:], end: 500) { $0.lifetime = .whenMissing(seconds: 500) },
        Row(fields: ["Cache-Control": "max-age=100"], end: 9e9) { $0.defaultStaleIfError = .max },
    ]

    @Test(arguments: rows) func itEndsWhenNothingAllowsTheReuseAnyMore(row: Row) {
        let response = StoredResponse(
            method: "GET", status: 200, fields: row.fields, requestTime: Self.arrival, responseTime: Self.arrival,
            vary: .none)
        var options = CachingOptions()
        row.change(&options)
        let end = Usefulness.end(of: ReuseFacts(response), options: options).timeIntervalSince(Self.arrival)
        #expect(min(end, 9e9) == row.end)
    }

    @Test func whatHasAValidatorCanBeConfirmed() {
        func response(_ fields: HeaderFields, method: String = "GET") -> StoredResponse {
            StoredResponse(
                method: method, status: 200, fields: fields, requestTime: Self.arrival, responseTime: Self.arrival,
                vary: .none)
        }
        #expect(response(["ETag": "\"a\""]).isConfirmable)
        #expect(response(["ETag": "W/\"a\""]).isConfirmable)
        #expect(response(["Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"]).isConfirmable)
        #expect(!response(["Last-Modified": "yesterday", "ETag": "a b"]).isConfirmable)
        #expect(!response([:]).isConfirmable)
        #expect(!response(["ETag": "\"a\""], method: "POST").isConfirmable)
    }
}
