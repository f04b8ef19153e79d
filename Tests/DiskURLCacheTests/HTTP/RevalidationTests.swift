import Foundation
import Testing

@testable import DiskURLCache

/// The conditional request, and what its 304 does to what is stored (RFC 9111 §4.3).
@Suite struct RevalidationTests {
    /// An origin that answers 304 to any condition.
    static func notModified(_ fields: HeaderFields, status: Int = 304) -> (RequestFacts) -> PureCache.Origin? {
        { _ in PureCache.Origin(status: status, fields: fields, body: Data()) }
    }

    static func stale(_ fields: HeaderFields) -> PureCache {
        var cache = PureCache()
        var fields = fields
        if fields["Cache-Control"] == nil { fields.append("Cache-Control", "max-age=2") }
        _ = cache.load(["Foo": "1"], answer: fields)
        cache.now += 5
        return cache
    }

    // MARK: The request

    @Test func aTagWithoutQuotesIsSentAsItCame() {
        var cache = Self.stale(["ETag": "abcdef"])
        #expect(cache.load().asked?.fields["If-None-Match"] == "abcdef")
    }

    @Test func storedDateIsSentAsItCame() {
        let text = "Friday, 15-Jan-27 07:00:00 GMT"
        var cache = Self.stale(["Last-Modified": text])
        let asked = cache.load().asked
        #expect(asked?.fields["If-Modified-Since"] == text)
        #expect(asked?.fields["If-None-Match"] == nil)
    }

    @Test func nothingIsSentWithoutAValidator() {
        var cache = Self.stale(["Last-Modified": "long ago", "ETag": "\"open"])
        #expect(cache.load().decision == .fetch(.stale, fields: [:]))
    }

    /// An origin judges conditions only where it would answer with a success (RFC 9110 §13.2.1): a 304 would confirm
    /// nothing here, and everything would be asked for once more.
    @Test(arguments: [301, 404, 410]) func nothingIsSentForWhatIsNoSuccess(status: Int) {
        var cache = PureCache()
        _ = cache.load(
            status: status, answer: ["Cache-Control": "max-age=2", "Last-Modified": httpDate(-3000), "ETag": "\"a\""])
        cache.now += 5
        #expect(cache.load().decision == .fetch(.stale, fields: [:]))
    }

    /// A 304 that names another variant could not be answered with it.
    @Test(arguments: ["bytes=0-0,2-3", "items=1-2"]) func noTagIsOfferedForWhatNoVariantCanAnswer(range: String) {
        var cache = Self.stale(["ETag": "\"a\"", "Vary": "Foo"])
        #expect(cache.load(["Foo": "2", "Range": range]).decision == .fetch(.variantNotInCache, fields: [:]))
        // Another one could answer, and has no tag.
        _ = cache.load(
            ["Foo": "3"], status: 302,
            answer: ["Cache-Control": "max-age=60", "Location": "/b", "Vary": "Foo"])
        #expect(cache.load(["Foo": "2", "Range": range]).decision == .fetch(.variantNotInCache, fields: [:]))
    }

    @Test func tagsOfAllVariantsAreOffered() {
        var cache = PureCache()
        for value in ["1", "2", "3"] {
            _ = cache.load(
                ["Foo": value], answer: ["Cache-Control": "max-age=2", "ETag": "\"\(value)\"", "Vary": "Foo"])
        }
        cache.now += 5
        #expect(cache.load(["Foo": "2"], status: 500).asked?.fields["If-None-Match"] == "\"2\", \"3\", \"1\"")
        // cache-tests `conditional-etag-vary-headers-mismatch`
        let asked = cache.load(["Foo": "4"], status: 500).asked
        #expect(asked?.fields["If-None-Match"] == "\"3\", \"2\", \"1\"")
        #expect(asked?.fields["If-Modified-Since"] == nil)
    }

    @Test func numberOfOfferedTagsIsBounded() {
        let variants = (0..<100).map { number in
            PureCache.variant(
                StoredResponse(
                    method: "GET", status: 200, fields: ["ETag": "\"\(number)\""], requestTime: PureCache.start,
                    responseTime: PureCache.start, vary: .none), length: 1)
        }
        let revalidation = Revalidation.conditional(
            for: RequestFacts(method: "GET", fields: [:]), variants: variants, selected: variants[50], reason: .stale)
        let tags = EntityTagCondition(revalidation?.fields["If-None-Match"] ?? "").tags
        #expect(tags.count == 16)
        #expect(tags.first?.text == "\"50\"")
    }

    @Test func clientsOwnTagsStayInTheList() {
        var cache = Self.stale(["ETag": "\"a\""])
        #expect(cache.load(["If-None-Match": "\"x\""], status: 500).asked?.fields["If-None-Match"] == "\"x\", \"a\"")
        #expect(cache.load(["If-None-Match": "\"a\""], status: 500).asked?.fields["If-None-Match"] == "\"a\"")
    }

    // MARK: The 304

    /// Validators stored, and those of the 304.
    static let confirmations: [(HeaderFields, HeaderFields)] = [
        (["ETag": "\"a\""], ["ETag": "\"a\""]),
        (["ETag": "W/\"a\""], ["ETag": "W/\"a\""]),
        (["ETag": "W/\"a\""], ["ETag": "\"a\""]),
        (["Last-Modified": httpDate(-9999)], ["Last-Modified": httpDate(-9999)]),
        (["ETag": "\"a\"", "Last-Modified": httpDate(-9999)], ["Last-Modified": httpDate(-9999)]),
        (["ETag": "\"a\""], [:]),
        (["Last-Modified": httpDate(-9999)], [:]),
    ]

    /// cache-tests `304-lm-use-stored-*`, `304-etag-update-response-*`
    @Test(arguments: confirmations)
    func storedResponseIsFreshenedAndServed(_ stored: HeaderFields, _ answer: HeaderFields) {
        var fields = stored
        fields.append("A", "1")
        fields.append("B", "1")
        var cache = Self.stale(fields)
        var update = answer
        update.append("B", "2")
        update.append("Cache-Control", "max-age=10")
        let validated = cache.load(origin: Self.notModified(update))
        #expect(validated.source == .validated && validated.status == 200)
        #expect(validated.body == Data("body".utf8))
        #expect(validated.fields["A"] == "1" && validated.fields["B"] == "2")
        #expect(validated.fields["Age"] == nil)
        cache.now += 9
        let again = cache.load()
        #expect(again.source == .stored && again.fields["B"] == "2" && again.fields["Age"] == "9")
        cache.now += 1
        #expect(cache.load(origin: Self.notModified(update)).source == .validated)
    }

    @Test func notModifiedWithoutADateIsOfTheTimeItArrived() {
        var cache = PureCache()
        _ = cache.load(answer: ["Cache-Control": "max-age=10", "ETag": "\"a\"", "Date": httpDate()])
        cache.now += 1000
        let answer = cache.load(origin: Self.notModified(["ETag": "\"a\""]))
        #expect(answer.fields["Date"] == httpDate(1000))
        cache.now += 9
        #expect(cache.load().source == .stored)
    }

    @Test func notModifiedOfAnotherTagFreshensNothing() {
        for answer in [["ETag": "\"b\""], ["ETag": "no tag"], ["Last-Modified": httpDate()]] as [HeaderFields] {
            var cache = Self.stale(["ETag": "\"a\""])
            let result = cache.load { request in
                request.fields["If-None-Match"] == nil
                    ? PureCache.Origin(body: Data("new".utf8)) : PureCache.Origin(status: 304, fields: answer)
            }
            #expect(result.source == .origin && result.originRequests == 2)
            #expect(result.status == 200 && result.body == Data("new".utf8))
        }
    }

    @Test func notModifiedForAnotherVariantServesThatAndIsKeptForThisRequest() {
        var cache = PureCache()
        for value in ["1", "2"] {
            _ = cache.load(
                ["Foo": value], answer: ["Cache-Control": "max-age=99", "ETag": "\"\(value)\"", "Vary": "Foo"],
                body: value)
        }
        let answer = cache.load(["Foo": "3"], origin: Self.notModified(["ETag": "\"1\""]))
        #expect(answer.source == .validated && answer.body == Data("1".utf8))
        #expect(cache.entries.count == 3)
        #expect(cache.load(["Foo": "3"]).source == .stored)
        #expect(cache.load(["Foo": "1"]).source == .stored)
        #expect(cache.load(["Foo": "2"]).body == Data("2".utf8))
    }

    @Test func aVaryThatA304AddsTellsRequestsApart() {
        var cache = Self.stale(["ETag": "\"a\""])
        let fields: HeaderFields = ["ETag": "\"a\"", "Cache-Control": "max-age=60", "Vary": "Foo"]
        #expect(cache.load(["Foo": "1"], origin: Self.notModified(fields)).source == .validated)
        #expect(cache.load(["Foo": "1"]).source == .stored)
        #expect(cache.load(["Foo": "2"], answer: ["Cache-Control": "max-age=60", "Vary": "Foo"]).source == .origin)
        #expect(cache.load(["Foo": "1"]).source == .stored)
    }

    /// RFC 9111 §4.3.4, §4.3.5: for the other request the origin may have something else by now.
    @Test(arguments: ["\"a\"", "W/\"a\""], [("GET", 304), ("HEAD", 304), ("HEAD", 200)])
    func onlyWhatTheRequestCouldHaveSelectedIsFreshened(tag: String, answer: (method: String, status: Int)) {
        var cache = PureCache()
        let fields: HeaderFields = ["Cache-Control": "max-age=2", "ETag": tag, "Vary": "Foo"]
        for value in ["1", "2"] { _ = cache.load(["Foo": value], answer: fields) }
        cache.now += 5
        let update = Self.notModified(
            ["Cache-Control": "max-age=60", "ETag": tag, "Vary": "Foo"], status: answer.status)
        _ = cache.load(method: answer.method, ["Foo": "1"], origin: update)
        #expect(cache.load(["Foo": "1"]).source == .stored)
        #expect(cache.load(["Foo": "2"], origin: Self.notModified(fields)).source == .validated)
    }

    /// Variants that were published together have one date, which does not tell them apart.
    @Test func aDateSelectsNoVariantOfOtherRequests() {
        var cache = PureCache()
        let date = httpDate(-9999)
        for value in ["1", "2"] {
            _ = cache.load(
                ["Foo": value], answer: ["ETag": "\"\(value)\"", "Last-Modified": date, "Vary": "Foo"], body: value)
        }
        let answer = cache.load(["Foo": "3"]) { request in
            request.fields["If-None-Match"] == nil
                ? PureCache.Origin(body: Data("3".utf8))
                : PureCache.Origin(status: 304, fields: ["Last-Modified": date])
        }
        #expect(answer.source == .origin && answer.body == Data("3".utf8))
    }

    @Test func notModifiedWithoutValidatorIsNotGuessedAmongVariants() {
        var cache = PureCache()
        for value in ["1", "2"] {
            _ = cache.load(
                ["Foo": value], answer: ["Cache-Control": "max-age=2", "ETag": "\"\(value)\"", "Vary": "Foo"])
        }
        cache.now += 5
        let result = cache.load(["Foo": "1"]) { request in
            PureCache.Origin(status: request.fields["If-None-Match"] == nil ? 200 : 304)
        }
        #expect(result.source == .origin && result.originRequests == 2)
    }

    @Test func notModifiedThatForbidsKeepingIsServedAndForgotten() {
        for value in ["no-store", "no-store, max-age=60"] {
            var cache = Self.stale(["ETag": "\"a\""])
            let answer = cache.load(origin: Self.notModified(["ETag": "\"a\"", "Cache-Control": value]))
            #expect(answer.source == .validated && answer.status == 200)
            #expect(cache.entries.isEmpty)
        }
    }

    @Test func headIsValidatedAndFreshensTheStoredGet() {
        var cache = Self.stale(["ETag": "\"a\""])
        let update: HeaderFields = ["ETag": "\"a\"", "Cache-Control": "max-age=60"]
        let answer = cache.load(method: "HEAD", origin: Self.notModified(update))
        #expect(answer.source == .validated && answer.body.isEmpty)
        #expect(cache.load().source == .stored)
    }

    @Test func rangeIsAnsweredFromWhatA304Confirms() {
        var cache = Self.stale(["ETag": "\"a\""])
        let answer = cache.load(["Range": "bytes=1-2"], origin: Self.notModified(["ETag": "\"a\""]))
        #expect(answer.source == .validated && answer.status == 206 && answer.body == Data("od".utf8))
    }

    /// The new answer is not the stored one, so no part is made of it.
    @Test(arguments: [(200, "a"), (200, "longer than body"), (404, "no such file"), (410, "")])
    func rangeIsNotCutFromAnAnswerThatConfirmsNothing(_ status: Int, _ body: String) {
        var cache = Self.stale(["ETag": "\"a\""])
        let answer = cache.load(["Range": "bytes=1-2"], status: status, answer: ["ETag": "\"b\""], body: body)
        #expect(answer.source == .origin && answer.status == status && answer.body == Data(body.utf8))
        #expect(answer.fields["Content-Range"] == nil)
    }

    // MARK: The client's own condition

    /// cache-tests `conditional-lm-stale`
    @Test func clientsDateIsJudgedAfterValidation() {
        var cache = Self.stale(["Last-Modified": httpDate(-3000)])
        let update: HeaderFields = ["Last-Modified": httpDate(-3000), "Cache-Control": "max-age=60"]
        let same = cache.load(["If-Modified-Since": httpDate(-3000)], origin: Self.notModified(update))
        #expect(same.source == .validated && same.status == 304)
        cache.now += 100
        let older = cache.load(["If-Modified-Since": httpDate(-9000)], origin: Self.notModified(update))
        #expect(older.source == .validated && older.status == 200)
        #expect(older.asked?.fields["If-Modified-Since"] == httpDate(-3000))
    }

    @Test func bareNotModifiedIsAboutTheDateThatWasSent() {
        var cache = Self.stale(["Last-Modified": httpDate(-3000)])
        let answer = cache.load(["If-Modified-Since": httpDate(-3000)], origin: Self.notModified([:]))
        #expect(answer.source == .validated && answer.status == 304 && answer.originRequests == 1)
    }

    @Test func bareNotModifiedMayBeAboutTheClientsOwnTag() {
        var cache = Self.stale(["ETag": "\"a\""])
        let answer = cache.load(["If-None-Match": "\"x\""], origin: Self.notModified([:]))
        #expect(answer.source == .origin && answer.status == 304 && answer.originRequests == 2)
        #expect(answer.asked?.fields["If-None-Match"] == "\"x\"")
    }

    /// The cache has added no tag of its own, so it is clear what the 304 means.
    @Test func bareNotModifiedAnswersTheClientThatNamedEachTag() {
        var cache = Self.stale(["ETag": "\"a\""])
        let both = cache.load(["If-None-Match": "\"a\", \"b\""], origin: Self.notModified([:]))
        #expect(both.source == .origin && both.status == 304 && both.originRequests == 1)
        let one = cache.load(["If-None-Match": "\"a\""], origin: Self.notModified(["Cache-Control": "max-age=60"]))
        #expect(one.source == .validated && one.status == 304 && one.originRequests == 1)
        #expect(cache.load().source == .stored)
    }

    @Test func clientsTagIsJudgedAfterValidation() {
        var cache = Self.stale(["ETag": "\"a\""])
        let confirmed = cache.load(["If-None-Match": "\"x\""], origin: Self.notModified(["ETag": "\"a\""]))
        #expect(confirmed.source == .validated && confirmed.status == 200)
        cache.now += 100
        let clients = cache.load(["If-None-Match": "\"x\""], origin: Self.notModified(["ETag": "\"x\""]))
        #expect(clients.source == .origin && clients.status == 304)
        #expect(cache.entries.count == 1)
    }

    @Test func conditionOfAClientIsPassedThrough() {
        var cache = PureCache()
        let answer = cache.load(["If-None-Match": "\"x\""], origin: Self.notModified([:]))
        #expect(answer.source == .origin && answer.status == 304)
        #expect(answer.asked?.fields["If-None-Match"] == "\"x\"")
        var dated = Self.stale([:])
        #expect(dated.load(["If-None-Match": "*"], origin: Self.notModified([:])).status == 304)
    }

    /// Some servers write a time in their own zone. They know it again; a cache cannot read it.
    @Test(arguments: ["Thu, 26 Nov 2026 02:45:35 +0100", "2026-11-26 02:45:35", "Thu, 26 Nov 2026 02:45:35 EST"])
    func aDateThatIsNotInGMTIsSentBackAsItCame(_ date: String) {
        var cache = Self.stale(["Last-Modified": date])
        for fields: HeaderFields in [[:], ["Last-Modified": date, "Cache-Control": "max-age=1"]] {
            let answer = cache.load(origin: Self.notModified(fields))
            #expect(answer.asked?.fields["If-Modified-Since"] == date && answer.source == .validated)
            cache.now += 100
        }
    }

    /// With a tag in the request, an origin must not look at the date (RFC 9110 §13.1.3).
    @Test(arguments: [false, true]) func aResponseThatHasOnlyADateIsConfirmedBesideOthers(isBare: Bool) {
        let modified = HTTPDate.format(PureCache.start - 1_000)
        let control: HeaderFields = ["Cache-Control": "max-age=5", "Vary": "Accept-Language"]
        let origin: (RequestFacts) -> PureCache.Origin = { request in
            var fields = control
            let isGerman = request.fields["Accept-Language"] == "de"
            fields.set(isGerman ? "ETag" : "Last-Modified", isGerman ? "\"de\"" : modified)
            let isKnown =
                request.fields["If-None-Match"].map { isGerman && $0.contains("\"de\"") }
                ?? (!isGerman && request.fields["If-Modified-Since"] == modified)
            if isKnown { return .init(status: 304, fields: isBare ? control : fields, body: Data()) }
            return .init(status: 200, fields: fields, body: Data("x".utf8))
        }
        var cache = PureCache()
        for language in ["en", "de"] { _ = cache.load(["Accept-Language": language], origin: origin) }
        cache.now += 10
        for language in ["en", "de"] {
            let answer = cache.load(["Accept-Language": language], origin: origin)
            #expect(answer.source == .validated && answer.originRequests == 1, "\(language)")
        }
    }

    /// It was asked by the date alone.
    @Test func a304MayHaveATagThatCannotBeRead() {
        let fields: HeaderFields = ["ETag": "\"a b\"", "Last-Modified": HTTPDate.format(PureCache.start - 1_000)]
        var cache = Self.stale(fields)
        #expect(cache.load(origin: Self.notModified(fields)).source == .validated)
    }
}
