import Testing

@testable import RedisStorage

/// Which stores may not have reached the server.
@Suite struct DoubtsTests {
    /// Two threads use a name: one removes what is doubtful, and meanwhile a store of the other one fails.
    @Test func aStoreThatFailsWhileOthersAreSettledStaysDoubtful() throws {
        var doubts = Doubts()
        doubts.add("v1", of: "name")
        doubts.add("v2", of: "name")
        let settled = try #require(doubts.about("name"))
        doubts.add("v2", of: "name")
        doubts.add("v3", of: "name")
        doubts.settle(settled, about: "name")
        #expect(doubts.about("name")?.keys.sorted() == ["v2", "v3"])
        doubts.settle(try #require(doubts.about("name")), about: "name")
        #expect(doubts.about("name") == nil)
    }

    @Test func namesAreBounded() {
        var doubts = Doubts()
        for number in 0..<5_000 { doubts.add("v", of: "\(number)") }
        #expect((0..<5_000).filter { doubts.about("\($0)") != nil }.count == 1_024)
        #expect(doubts.about("4999") != nil)
    }
}
