import Foundation
import Testing

@testable import DiskURLCache

/// Loads share the response object of an entry as long as it would be the same, and no longer.
@Suite(.fewAtATime) struct DeliveredResponseTests {
    private let form = StoredEntry.DeliveredForm(url: "/a", presentation: .whole, age: 7)

    private func entry() -> StoredEntry {
        let now = Date(timeIntervalSince1970: 1_790_000_000)
        return StoredEntry(
            metadata: EntryMetadata(
                sequence: 1, url: nil,
                response: .http(
                    StoredResponse(
                        method: "GET", status: 200, fields: ["X": "y"], requestTime: now, responseTime: now,
                        vary: .none)),
                storedAt: now, placement: .memoryAndDisk, userInfo: [:], tags: [], isPinned: false),
            body: Data())
    }

    @Test func theSameFormIsTheSameObject() {
        let entry = entry()
        let first = entry.deliveredHead(form) { DeliveredHead(Responses.http(Responses.url(form.url))) }
        #expect(entry.deliveredHead(form) { DeliveredHead(Responses.http(Responses.url(form.url))) } === first)
    }

    @Test(
        arguments: [
            { $0.url = "/b" }, { $0.age = 8 }, { $0.presentation = .notModified },
            { $0.cacheStatus = "a; hit" },
        ] as [@Sendable (inout StoredEntry.DeliveredForm) -> Void])
    func anotherFormIsAnotherObject(_ change: @Sendable (inout StoredEntry.DeliveredForm) -> Void) {
        let entry = entry()
        let first = entry.deliveredHead(form) { DeliveredHead(Responses.http(Responses.url(form.url))) }
        var other = form
        change(&other)
        #expect(entry.deliveredHead(other) { DeliveredHead(Responses.http(Responses.url(other.url))) } !== first)
    }

    @Test(.loadsOnLinux) func loadsWithinOneSecondShareIt() async throws {
        let origin = try OriginServer.counting()
        let harness = try LoadingHarness()
        try await harness.load(origin.url("/a"))
        let first = try await harness.load(origin.url("/a")).response
        #expect(try await harness.load(origin.url("/a")).response === first)
        #expect(try await harness.load(origin.url("/a"), ["Range": "bytes=0-0"]).response.statusCode == 206)
        harness.clock.advance(by: 1)
        let later = try await harness.load(origin.url("/a")).response
        #expect(first.value(forHTTPHeaderField: "Age") == "0" && later.value(forHTTPHeaderField: "Age") == "1")
    }
}
