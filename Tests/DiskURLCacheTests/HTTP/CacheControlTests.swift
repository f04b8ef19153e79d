import Testing

@testable import DiskURLCache

@Suite(.fewAtATime) struct CacheControlTests {
    @Test func membersAreSplitOutsideQuotes() {
        #expect(FieldSyntax.members(of: " a , b=\"x, y\",, c ,") == ["a", "b=\"x, y\"", "c"])
        #expect(FieldSyntax.members(of: "a=\"\\\", b\", c") == ["a=\"\\\", b\"", "c"])
        #expect(FieldSyntax.members(of: "") == [])
        #expect(FieldSyntax.members(of: " , ,\t") == [])
    }

    @Test func quoteThatIsNeverClosedHidesNothing() {
        #expect(FieldSyntax.members(of: "a=\"b, no-store") == ["a=\"b", "no-store"])
        #expect(CacheControl("ext=\"oops, no-store").contains("no-store"))
        #expect(FieldSyntax.members(of: "a=\"\\\"b, \\\"c, d") == ["a=\"\\\"b", "\\\"c", "d"])
    }

    /// In one pass: to look for the end of each of these quotes would take hours.
    @Test func quotesThatAreNeverClosedTakeNoLonger() {
        let quotes = String(repeating: "\"\\", count: 1_000_000)
        #expect(FieldSyntax.members(of: quotes).count == 1)
    }

    /// Foundation keeps one of several fields whose names differ by their case.
    @Test func eachNameIsThereOnceWithAllValues() {
        let fields: HeaderFields = ["A-b": "1", "a-B": "2", "c": "3", "A-b": "4", "C": "5"]
        #expect(fields.dictionary == ["A-b": "1, 2, 4", "c": "3, 5"])
    }

    @Test func namesAreTakenInAnyCaseAndArgumentsInBothForms() {
        let control = CacheControl("No-Store, MAX-AGE=\"60\", foo=bar, ext=\"a\\\"b\"")
        #expect(control.contains("no-store"))
        #expect(control.seconds("max-age") == .value(60))
        #expect(control.directives.last?.argument == .value("a\"b"))
        #expect(CacheControl("max-age=\"\\60\"").seconds("max-age") == .value(60))
    }

    @Test func restrictionCountsWhateverFollowsIt() {
        for text in ["no-store=1", "no-store =x", "no-store;", "no-store foo", "no-store=\"", "no-store/"] {
            #expect(CacheControl(text).contains("no-store"), "\(text)")
        }
        #expect(!CacheControl("no-stores, xno-store, \"no-store\"").contains("no-store"))
    }

    @Test(
        arguments: [
            ("max-age=5", .value(5)), ("max-age", .invalid), ("max-age=", .invalid),
            ("max-age=-1", .invalid), ("max-age=1.0", .invalid), ("max-age=+1", .invalid),
            ("max-age=1, max-age=x", .invalid),
            ("max-age=9, max-age=3, max-age=6", .value(3)), ("s-maxage=1", nil),
            ("max-age=4294967296", .value(1 << 31)),
            ("max-age=１", .invalid),
        ] as [(String, CacheControl.Seconds?)])
    func seconds(_ text: String, _ expected: CacheControl.Seconds?) {
        #expect(CacheControl(text).seconds("max-age") == expected)
    }

    @Test func qualifiedNoCacheNamesFields() {
        #expect(CacheControl("no-cache=\"A, b\", no-cache=c").fieldNames("no-cache") == ["a", "b", "c"])
        #expect(CacheControl("no-cache=\"a\", no-cache").fieldNames("no-cache") == nil)
        #expect(CacheControl("no-cache=\"\"").fieldNames("no-cache") == nil)
        #expect(CacheControl("no-cache=\"a b\"").fieldNames("no-cache") == nil)
        #expect(CacheControl("max-age=1").fieldNames("no-cache") == [])
    }

    @Test func responseDirectivesOfAPrivateCache() {
        let said = ResponseDirectives([
            "Cache-Control": "public, must-revalidate, immutable, must-understand, stale-if-error=7",
            "cache-control": "stale-while-revalidate=x, private=\"a\", s-maxage=5, proxy-revalidate",
        ])
        #expect(said.isPublic && said.mustRevalidate && said.isImmutable && said.mustUnderstand)
        #expect(said.staleIfError == 7)
        #expect(said.staleWhileRevalidate == nil)
        #expect(!said.noStore && !said.noCache && said.maxAge == nil)
    }

    @Test func requestDirectives() {
        let asked = RequestDirectives(["Cache-Control": "max-age=x, min-fresh=3, max-stale, only-if-cached"])
        #expect(asked.maxAge == 0)
        #expect(asked.minFresh == 3)
        #expect(asked.maxStale == .max)
        #expect(asked.onlyIfCached)
        #expect(RequestDirectives(["Cache-Control": "max-stale=9"]).maxStale == 9)
        #expect(RequestDirectives(["Cache-Control": "max-stale=x"]).maxStale == nil)
        #expect(RequestDirectives(["Pragma": "no-cache"]).noCache)
        #expect(!RequestDirectives(["Pragma": "no-cache", "Cache-Control": "max-age=1"]).noCache)
    }

    @Test(
        arguments: [
            (nil, false), ("", false), ("max-age=60", false), ("no-store", true), ("NO-STORE", true),
            ("private, No-Store", true),
            ("no-store=1", true), ("max-age=60,no-store", true), ("x=\"no-store\"", false), ("no-stor", false),
            ("no-stores", false), ("must-revalidate", false), ("stno-sto", false),
        ] as [(String?, Bool)])
    func noStoreIsFound(value: String?, expected: Bool) {
        #expect(CacheControl(value).contains("no-store") == expected)
    }
}

extension CacheControl.Seconds {
    fileprivate static func value(_ count: Int64) -> Self { Self(count: count) }
}
