import Testing

@testable import DiskURLCache

@Suite struct ByteRangeTests {
    @Test(arguments: [
        ("bytes=0-1", 11, 0..<2), ("bytes=1-", 11, 1..<11), ("bytes=-1", 11, 10..<11), ("Bytes=0-99", 11, 0..<11),
        ("bytes=-99", 11, 0..<11), ("bytes= 3-3 ", 11, 3..<4), ("bytes=,3-3,", 11, 3..<4),
        ("bytes=10-999999999999999999999999", 11, 10..<11), ("bytes=-999999999999999999999999", 11, 0..<11),
        ("bytes=0-\(Int.max)", Int.max, 0..<Int.max),
    ])
    func singleRange(_ value: String, _ total: Int, _ expected: Range<Int>) {
        guard case .single(let range) = RangeRequest(value) else {
            Issue.record("not a single range: \(value)")
            return
        }
        #expect(range.resolved(total: total) == expected)
    }

    @Test(arguments: [("bytes=11-", 11), ("bytes=-0", 11), ("bytes=0-", 0), ("bytes=-1", 0), ("bytes=99-100", 11)])
    func unsatisfiableRange(_ value: String, _ total: Int) {
        guard case .single(let range) = RangeRequest(value) else {
            Issue.record("not a single range: \(value)")
            return
        }
        #expect(range.resolved(total: total) == nil)
    }

    @Test(arguments: [
        "", "bytes", "bytes=", "bytes=a-b", "bytes=1", "bytes=2-1", "bytes=--1", "bytes=1-2-3", "bytes=0x1-2", "=0-1",
        "bytes =0-1", "bytes=0 - 1", "bytes=0-1,x", "bytes=+1-2",
    ])
    func malformedRange(_ value: String) {
        #expect(RangeRequest(value) == .malformed)
    }

    @Test(arguments: ["bytes=0-1,3-4", "seconds=1-2", "seconds=1=2", "bytes=-1,-2"])
    func rangesForTheOrigin(_ value: String) {
        #expect(RangeRequest(value) == .other)
    }

    @Test func contentRange() {
        #expect(ContentRange("bytes 4-9/10")?.range == 4..<10)
        #expect(ContentRange("BYTES 0-0/1")?.total == 1)
        for value in [
            "bytes 4-9/*", "bytes */10", "bytes 4-10/10", "bytes 9-4/10", "bytes 4-/10", "bytes -4/10", "4-9/10",
            "bytes=4-9/10", "bytes 4-9", "bytes 4-9/10/11", "", "bytes 0-\(Int.max)/\(Int.max)",
            // More than an `Int` holds: a saturated number would be delivered as the length of the whole.
            "bytes 0-9/\(Int.max)", "bytes 0-9/\(Int.max)0",
        ] {
            #expect(ContentRange(value) == nil, "\(value)")
        }
    }
}
