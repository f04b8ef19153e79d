import Testing

@testable import DiskURLCache

@Suite struct CacheStatusTests {
    @Test func hit() {
        var status = CacheStatus(cacheName: "DiskURLCache")
        status.hit = true
        status.timeToLive = -30
        status.forward = .stale
        status.stored = true
        status.detail = "stale-while-revalidate"
        #expect(status.fieldValue == "DiskURLCache; hit; ttl=-30; detail=stale-while-revalidate")
    }

    @Test func forwarded() {
        var status = CacheStatus(cacheName: "DiskURLCache")
        status.forward = .stale
        status.forwardStatus = 304
        status.timeToLive = 60
        status.stored = true
        status.collapsed = true
        #expect(status.fieldValue == "DiskURLCache; fwd=stale; fwd-status=304; ttl=60; stored; collapsed")
    }

    @Test(arguments: [
        ("a b", "\"a b\""), ("say \"\\\"", "\"say \\\"\\\\\\\"\""), ("1a", "\"1a\""), ("", "\"\""), ("ü\n;", "\";\""),
    ])
    func textThatIsNoTokenIsAString(_ name: String, _ expected: String) {
        #expect(CacheStatus(cacheName: name).fieldValue == expected)
    }

    @Test func numbersStayWithinFifteenDigits() {
        var status = CacheStatus(cacheName: "c")
        status.timeToLive = .min
        #expect(status.fieldValue == "c; ttl=-999999999999999")
    }

    @Test func memberIsAddedBehindThoseOnTheWay() {
        var fields: HeaderFields = ["cache-status": "CDN; hit"]
        CacheStatus(cacheName: "c").append(to: &fields)
        #expect(fields.values(of: "Cache-Status") == ["CDN; hit, c"])
    }

    @Test func reasonsToForward() {
        #expect(FetchReason.notStored.forward.rawValue == "uri-miss")
        #expect(FetchReason.variantNotStored.forward.rawValue == "vary-miss")
        #expect(FetchReason.requestDirective.forward.rawValue == "request")
        #expect(FetchReason.rangeNotHeld.forward.rawValue == "partial")
    }
}
