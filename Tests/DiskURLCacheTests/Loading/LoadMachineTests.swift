import Foundation
import Testing

@testable import DiskURLCache

/// The state machine without sockets: each event by hand, each action by name. In which order the store and the client
/// are served matters only where a test says so.
@Suite struct LoadMachineTests {
    private let now = Date(timeIntervalSince1970: 1_790_000_000)

    // MARK: From the store

    /// What memory holds needs no reading, and what Foundation asked for before the load no second lookup.
    @Test func hitWithTheBodyAtHand() {
        let all: MachineActions = ["report hit", "storedHead 200", "data stored", "finish"]
        var load = MachineDriver()
        _ = load.start()
        #expect(load.found([.fresh], body: "stored") == all)
        var foundBefore = MachineDriver()
        #expect(foundBefore.found([.fresh], body: "stored") == all)
        #expect(foundBefore.start() == [])
        var stale = MachineDriver()
        #expect(stale.found([.stale()], body: "stored") == ["fetch collapsible if-none-match"])
    }

    /// The range was chosen by the length that the lookup gave.
    @Test func rangeOfABodyOfAnotherLengthIsNotServed() {
        for (body, isServed) in [("stored", true), ("stor", false), ("stored longer", false)] {
            var load = MachineDriver.after([.fresh], fields: ["Range": "bytes=-2"])
            let expected: MachineActions = isServed ? ["report hit", "storedHead 206", "data ed", "finish"] : ["fetch"]
            #expect(load.body(body) == expected)

            var validated = MachineDriver.after([.stale()], fields: ["Range": "bytes=-2"])
            _ = validated.head(304, ["ETag": "\"e\""])
            _ = validated.end()
            #expect(validated.body(body).all.last == (isServed ? "finish" : "fetch"))
        }
    }

    @Test func bodyGoneAndTheNetworkForbidden() {
        var load = MachineDriver.after([.fresh], policy: .returnCacheDataDontLoad)
        #expect(load.body(nil) == ["report failed", "fail -1008"])
    }

    // MARK: From the network

    /// Whoever has the whole response finds it by the next lookup.
    @Test func whatIsDeliveredIsStoredBefore() {
        var whole = MachineDriver.after([])
        _ = whole.head(200, ["Cache-Control": "max-age=60"])
        let actions = whole.end().all
        #expect(actions.firstIndex(of: "store  /a") ?? .max < actions.firstIndex(of: "networkHead") ?? 0)

        var streamed = MachineDriver.after([]) { $0.streams = true }
        _ = streamed.head(200, ["Cache-Control": "max-age=60"])
        #expect(streamed.end().all == ["store  /a", "finish"])

        var confirmed = MachineDriver.after([.stale()])
        _ = confirmed.head(304, ["ETag": "\"e\"", "Cache-Control": "max-age=60"])
        _ = confirmed.end()
        let updating = confirmed.body("stored").all
        #expect(updating.firstIndex(of: "change update 0 /a") ?? .max < updating.firstIndex(of: "storedHead 200") ?? 0)
    }

    @Test(arguments: [true, false]) func errorInTheMiddleOfTheBody(streams: Bool) {
        var load = MachineDriver.after([.stale("stale-if-error=600")]) { $0.streams = streams }
        _ = load.head(200, ["Cache-Control": "max-age=60"])
        _ = load.data("one")
        if streams {
            // A part was delivered: nothing can stand in any more.
            #expect(load.end(.networkConnectionLost) == ["report failed", "fail -1005"])
        } else {
            #expect(load.end(.networkConnectionLost) == ["readBody 0"])
            #expect(
                load.body("stored") == ["report stand-in stale-if-error", "storedHead 200", "data stored", "finish"])
            #expect(!load.machine.report.isStoredForOthers)
        }
    }

    // MARK: Validation

    @Test func a304WhoseBodyIsGoneAsksForTheWhole() {
        var load = MachineDriver.after([.stale()])
        _ = load.head(304, ["ETag": "\"e\""])
        _ = load.end()
        #expect(load.body(nil) == ["fetch collapsible"])
        _ = load.head(200, ["Cache-Control": "max-age=60"])
        _ = load.data("new")
        #expect(load.end() == ["store new /a", "report miss", "networkHead", "data new", "finish"])
    }

    @Test func a304AboutNothingStoredAsksAgainOnce() {
        var load = MachineDriver.after([.stale()])
        #expect(load.head(304, ["ETag": "\"other\""]) == ["cancelFetch", "distrust", "fetch collapsible"])
        #expect(load.head(304, ["ETag": "\"other\""]) == ["release"])
        #expect(load.end() == ["report miss", "networkHead", "finish"])
    }

    @Test func a200ReplacesAndA503GivesWay() {
        var load = MachineDriver.after([.stale()])
        _ = load.head(200, ["Cache-Control": "max-age=60"])
        _ = load.data("new")
        #expect(load.end() == ["store new /a", "report miss", "networkHead", "data new", "finish"])

        var other = MachineDriver.after([.stale("stale-if-error=600")])
        #expect(other.head(503) == ["cancelFetch", "readBody 0"])
        #expect(other.body("stored").answer.last == "finish")
    }

    // MARK: Parts

    @Test(arguments: [true, false]) func partWithSurplusBytesIsDeliveredButNotStored(streams: Bool) {
        for (body, isStored) in [("four", true), ("for", true), ("fours", false)] {
            var load = MachineDriver.after([], fields: ["Range": "bytes=6-"]) { $0.streams = streams }
            _ = load.head(206, ["Cache-Control": "max-age=60", "Content-Range": "bytes 6-9/10"])
            _ = load.data(body)
            let actions = load.end()
            #expect(actions.contains("store \(body) /a") == isStored)
            #expect(actions.answer.last == "finish")
            if !isStored {
                guard case .refused(.partialContent)? = load.machine.report.storage else {
                    Issue.record("\(load.machine.report)")
                    continue
                }
            }
        }
    }

    /// A closure or a delegate may have changed what is stored.
    @Test func editedPartMustFitItsRangeToo() {
        var load = MachineDriver.after([], fields: ["Range": "bytes=6-"]) { $0.confirmsStorage = true }
        _ = load.head(206, ["Cache-Control": "max-age=60", "Content-Range": "bytes 6-9/10"])
        _ = load.data("four")
        #expect(load.end() == ["confirmStorage four by delegate"])
        #expect(load.confirm("longer") == ["report miss", "networkHead", "data four", "finish"])
    }

    // MARK: A refresh in the background

    /// What is stored may have been removed since: then nobody waits for an answer, and nothing may be stored again.
    @Test func refreshOfWhatIsGoneEnds() {
        var load = MachineDriver()
        #expect(load.refresh([.stale()]) == ["fetch if-none-match"])
        _ = load.head(304, ["ETag": "\"e\"", "Cache-Control": "max-age=60"])
        #expect(load.end() == ["readBody 0"])
        #expect(load.body(nil) == ["finish"])
        #expect(load.hasEnded)
    }

    @Test func refreshThatBringsNothingEnds() {
        var error = MachineDriver()
        _ = error.refresh([.stale("stale-if-error=600")])
        #expect(error.head(503) == ["cancelFetch", "finish"])
        var offline = MachineDriver()
        _ = offline.refresh([.stale("stale-if-error=600")])
        #expect(offline.end(.notConnectedToInternet) == ["finish"])
    }

    @Test func whatARefreshBringsIsStoredOverWhatItRefreshes() {
        var load = MachineDriver()
        _ = load.refresh([.stale()])
        _ = load.head(200, ["Cache-Control": "max-age=60"])
        _ = load.data("new")
        // Whatever becomes of the store, nobody reads the body.
        #expect(load.end() == ["store new /a over 0", "finish"])

        // Also where the origin had to be asked once more, which may have been after the removal.
        var repeated = MachineDriver()
        _ = repeated.refresh([.stale()])
        #expect(repeated.head(304, ["ETag": "\"other\""]) == ["cancelFetch", "distrust", "fetch"])
        _ = repeated.head(200, ["Cache-Control": "max-age=60"])
        _ = repeated.data("new")
        #expect(repeated.end().effects == ["store new /a over 0"])

        var confirmed = MachineDriver { $0.confirmsStorage = true }
        _ = confirmed.refresh([.stale()])
        _ = confirmed.head(200, ["Cache-Control": "max-age=60"])
        _ = confirmed.end()
        #expect(confirmed.confirm("x").effects == ["store x /a over 0"])
    }

    @Test func refreshFollowsNoRedirect() {
        var load = MachineDriver()
        _ = load.refresh([.stale()])
        _ = load.head(301, ["Location": "/b", "Cache-Control": "max-age=60"])
        let actions = load.end()
        #expect(actions.effects == ["store  /a over 0"] && actions.answer.last == "finish")
    }

    // MARK: Redirects

    /// Nothing says where to go: the status is the answer, and is stored as any other.
    @Test(
        arguments: [300, 301, 302, 303, 305, 306, 307, 308],
        [[:], ["Location": "mailto:a@example.com"], ["Location": "ftp://a.com/"], ["Location": "http://"]]
            as [HeaderFields])
    func redirectWithoutAUsableLocationIsAnAnswer(_ status: Int, _ location: HeaderFields) {
        for streams in [true, false] {
            var load = MachineDriver.after([]) { $0.streams = streams }
            var fields = location
            fields.append("Cache-Control", "max-age=60")
            let head = load.head(status, fields)
            let body = load.data("moved")
            let actions = head + body + load.end()
            #expect(actions == ["report miss", "networkHead", "data moved", "store moved /a", "finish"])
        }
    }

    /// RFC 9110 §15.4.1, §15.4.6, §15.4.7: a choice for the user, a deprecated code, and a reserved one.
    @Test(arguments: [300, 305, 306]) func redirectThatIsNotFollowedIsAnAnswer(_ status: Int) {
        var load = MachineDriver.after([])
        _ = load.head(status, ["Location": "/b", "Cache-Control": "no-store"])
        #expect(load.end() == ["report miss", "networkHead", "finish"])
    }

    @Test(arguments: [true, false]) func theDelegateDecidesAboutARedirect(fromStore: Bool) {
        for follows in [true, false] {
            var load = MachineDriver { $0.confirmsRedirects = true }
            _ = load.start()
            if fromStore {
                _ = load.found([.redirect])
                #expect(load.body("m") == ["confirmRedirect /b"])
            } else {
                _ = load.found([])
                _ = load.head(301, ["Location": "/b", "Cache-Control": "no-store"])
                _ = load.data("m")
                #expect(load.end() == ["confirmRedirect /b"])
            }
            if follows {
                #expect(load.redirect(to: "/c") == ["lookUp"])
                _ = load.found([])
                #expect(load.request.url?.path == "/c")
            } else {
                let report = fromStore ? "report hit" : "report miss"
                #expect(load.redirect(to: nil) == [report, "storedHead 301", "data m", "finish"])
            }
        }
    }

    // MARK: Storing

    @Test func aRedirectIsConfirmedWithoutTheDelegate() {
        var load = MachineDriver.after([]) { $0.confirmsStorage = true }
        _ = load.head(301, ["Location": "/b", "Cache-Control": "max-age=60"])
        #expect(load.end() == ["confirmStorage "])
        #expect(load.confirm("x") == ["store x /a", "lookUp"])
    }

    // MARK: Waiting for another load

    @Test(arguments: [
        ["Range": "bytes=0-1"], ["If-None-Match": "\"a\""], ["If-Match": "\"a\""], ["Cache-Control": "no-store"],
        ["Cache-Control": "no-cache"], ["Cache-Control": "max-age=0"],
    ]) func requestsForLessOrForNobodyElseDoNotWait(fields: [String: String]) {
        var load = MachineDriver(fields: fields)
        _ = load.start()
        #expect(load.found([]).effects.first?.contains("collapsible") == false)
    }

    /// The wait may have taken long.
    @Test func whatWasConfirmedMeanwhileHasItsAge() {
        var load = MachineDriver.after([.noCache(age: 60)])
        load.now += 15
        _ = load.waitEnded()
        #expect(load.found([.noCache(age: 2)], body: "stored").report == "report hit collapsed")
        #expect(load.machine.report.publicReport(cacheName: nil).age == 2)
    }

    /// A redirect may have taken long: what was confirmed before it is older than the request for the next URL.
    @Test func whatWasConfirmedBeforeTheHopIsAskedFor() {
        var load = MachineDriver.after([])
        load.now += 5
        _ = load.head(303, ["Location": "/b", "Cache-Control": "no-store"])
        #expect(load.end() == ["lookUp"])
        load.now += 1
        #expect(load.found([.noCache(age: 3)]) == ["fetch collapsible if-none-match"])
        load.now += 1
        #expect(load.waitEnded() == ["lookUp"])
        #expect(load.found([.noCache(age: 4)]) == ["fetch if-none-match"])
    }

    // MARK: Without the network

    @Test(arguments: [true, false]) func aRequestWithoutAKeyIsHeldBackToo(isOffline: Bool) {
        var load = MachineDriver(
            method: "POST", policy: isOffline ? .useProtocolCachePolicy : .returnCacheDataDontLoad
        ) {
            $0.isOffline = isOffline
            $0.hasKey = false
        }
        let code = isOffline ? URLError.Code.notConnectedToInternet : .resourceUnavailable
        #expect(load.start() == ["report failed", "fail \(code.rawValue)"])
        var asking = MachineDriver(fields: ["Cache-Control": "only-if-cached"]) { $0.hasKey = false }
        #expect(asking.start() == ["report failed", "storedHead 504", "finish"])
    }

    /// Stored redirects that lead in a circle stand in for an error once.
    @Test func anErrorInACircleOfRedirectsIsDelivered() {
        var load = MachineDriver.after([.staleRedirect])
        for _ in 1...2 {
            #expect(load.head(503) == ["cancelFetch", "readBody 0"])
            #expect(load.body("") == ["lookUp"])
            _ = load.found([.staleRedirect])
        }
        _ = load.head(503)
        #expect(load.end() == ["report miss", "networkHead", "finish"])
    }

    // MARK: Other methods

    @Test func anUnsafeMethodInvalidates() {
        var load = MachineDriver(method: "POST")
        #expect(load.start() == ["fetch"])
        #expect(load.head(201, ["Location": "/c"]) == ["invalidate /a /c"])
        #expect(load.end() == ["report bypass", "networkHead", "finish"])
        var failing = MachineDriver(method: "POST")
        _ = failing.start()
        #expect(failing.head(500) == [])
    }

    // MARK: Cancellation

    @Test func cancellationAtEachStep() {
        let steps: [(inout MachineDriver) -> MachineActions] = [
            { $0.start() }, { $0.found([.stale()]) }, { $0.head(304, ["ETag": "\"e\""]) }, { $0.end() },
        ]
        for count in 0...steps.count {
            var load = MachineDriver()
            for step in steps.prefix(count) { _ = step(&load) }
            // Only a fetch under way has something to stop.
            let stopping: MachineActions = count == 2 || count == 3 ? ["cancelFetch"] : []
            #expect(load.cancel() == stopping)
            #expect(load.start() + load.found([.fresh]) + load.body("x") + load.head(200) + load.end() == [])
        }
    }
}
