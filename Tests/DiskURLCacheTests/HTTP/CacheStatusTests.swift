import Testing

@testable import DiskURLCache

@Suite struct CacheStatusTests {
    @Test func hit() {
        var status = CacheStatus(cacheName: "DiskURLCache")
        status.hit = true
        status.timeToLive = -30
        status.forward = "stale"
        status.stored = true
        status.detail = "stale-while-revalidate"
        #expect(status.fieldValue == "DiskURLCache; hit; ttl=-30; detail=stale-while-revalidate")
    }

    @Test func forwarded() {
        var status = CacheStatus(cacheName: "DiskURLCache")
        status.forward = "stale"
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
        CacheStatus.append(CacheStatus(cacheName: "c").fieldValue, to: &fields)
        #expect(fields.values(of: "Cache-Status") == ["CDN; hit, c"])
    }

    // MARK: Of a load

    static func text(_ outcome: LoadReport.Outcome, storage: LoadReport.Storage? = nil) -> String {
        var report = LoadReport(of: DiskURLCache.Request(Responses.request("/a")), at: PureCache.start)
        if case .hit = outcome {
            report.note(outcome, status: 200)
        } else {
            report.note(outcome, status: 200, forwardStatus: 200, storage: storage)
        }
        return report.cacheStatus(name: "c").fieldValue
    }

    /// RFC 9211 §2.5: what was to be stored need not have been, for want of space or by an app's refusal.
    @Test func storedIsSaidOfWhatWasStored() {
        #expect(Self.text(.miss(.notInCache), storage: .stored) == "c; fwd=uri-miss; fwd-status=200; stored")
        #expect(
            Self.text(.miss(.notInCache), storage: .refused(.refusedByApp)) == "c; fwd=uri-miss; fwd-status=200")
        #expect(Self.text(.miss(.notInCache)) == "c; fwd=uri-miss; fwd-status=200")
        #expect(Self.text(.hit(.memory, nil)) == "c; hit")
    }

    /// "stored; detail=not-in-cache" would contradict itself: a detail says only what `fwd` does not.
    @Test(arguments: [
        (DiskURLCache.Reason.notInCache, "uri-miss"), (.variantNotInCache, "vary-miss"), (.stale, "stale"),
        (.methodNotCached, "method"), (.noCache, "stale; fwd-status=200; detail=no-cache"),
        (.cachePolicy, "request; fwd-status=200; detail=cache-policy"),
    ])
    func detailSaysWhatForwardDoesNot(_ reason: DiskURLCache.Reason, _ expected: String) {
        let text = Self.text(.miss(reason))
        #expect(text == "c; fwd=\(expected)" + (expected.contains(";") ? "" : "; fwd-status=200"))
    }

    @Test func reasonsToForward() {
        #expect(DiskURLCache.Reason.notInCache.forward == "uri-miss")
        #expect(DiskURLCache.Reason.variantNotInCache.forward == "vary-miss")
        #expect(DiskURLCache.Reason.requestDirective.forward == "request")
        #expect(DiskURLCache.Reason.rangeNotHeld.forward == "partial")
    }
}
