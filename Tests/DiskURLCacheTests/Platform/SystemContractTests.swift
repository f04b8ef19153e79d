import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// What a cache does on Apple platforms, where the system's own loader calls it: the same code, with the platform as
/// data.
@Suite(.fewAtATime) struct SystemContractTests {
    private let scratch: ScratchDirectory
    private let cache: DiskURLCache
    private let plain = URLSession(configuration: .ephemeral.patient)

    init() throws {
        scratch = try ScratchDirectory("contract")
        cache = Self.cache(scratch)
    }

    private static func cache(
        _ scratch: ScratchDirectory, _ platform: Platform = .iOS, memory: Int = 8 << 20, disk: Int = 64 << 20
    ) -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: memory, diskCapacity: disk, directory: scratch.appending("cache"))
        configuration.platform = platform
        configuration.superclassDirectory = scratch.appending("superclass")
        return DiskURLCache(configuration: configuration)
    }

    private func lookup(_ task: URLSessionDataTask, in cache: DiskURLCache) async -> CachedURLResponse? {
        let found = Mutex<CachedURLResponse?>(nil)
        await withCheckedContinuation { continuation in
            cache.getCachedResponse(for: task) { response in
                found.withLock { $0 = response }
                continuation.resume()
            }
        }
        return found.withLock { $0 }
    }

    @Test func attachingSetsTheCacheAndNoLoader() {
        let configuration = URLSessionConfiguration.ephemeral.patient
        cache.attach(to: configuration)
        #expect(configuration.urlCache === cache)
        #expect(configuration.protocolClasses?.contains(where: CachingURLProtocol.isLoader) != true)
    }

    @Test func whatEachPlatformRegisters() {
        #expect(Platform.linux.attachesLoader && !Platform.linux.makesSessionClasses)
        for platform in [Platform.macOS, .iOS] { #expect(!platform.attachesLoader && platform.makesSessionClasses) }
        #expect(!Platform.watchOS.attachesLoader && !Platform.watchOS.makesSessionClasses)
        #expect(!Platform.macOS.locksOnlyInPasses && Platform.iOS.locksOnlyInPasses)
    }

    @Test func theSuperclassHoldsLittleAndNothingOnDisk() {
        #expect(cache.memoryCapacity == 8 << 20)
        #expect(cache.diskCapacity == 64 << 20)
        for platform in [Platform.watchOS, .appExtension] {
            #expect(platform.superclassCapacity(memory: 64 << 20) == 8 << 20)
            #expect(platform.superclassCapacity(memory: 1 << 20) == 1 << 20)
        }
        #expect(Platform.iOS.superclassCapacity(memory: 64 << 20) == 64 << 20)
        #expect(Platform.linux.superclassCapacity(memory: 64 << 20) == 0)
        // A twentieth of its capacity, and not nothing.
        #expect(
            Platform.iOS.superclassKeeps(bytes: 50, memory: 1_000)
                && !Platform.iOS.superclassKeeps(bytes: 51, memory: 1_000))
        #expect(!Platform.iOS.superclassKeeps(bytes: 0, memory: 1_000))
        #expect(Platform.superclassDirectory.path.hasPrefix("/"))
    }

    @Test func aTaskGetsWhatWasStoredUnchangedAndStale() async throws {
        let url = Responses.url("/a")
        let fields = [
            "Date": "Mon, 01 Jan 2001 00:00:00 GMT", "Age": "7", "Cache-Control": "max-age=1", "ETag": "\"1\"",
            "Set-Cookie": "a=b", "Connection": "close",
        ]
        let stored = Responses.cached(
            url, "old", fields: fields, userInfo: ["a": "b"], policy: .allowedInMemoryOnly)
        let task = plain.dataTask(with: url)
        cache.storeCachedResponse(stored, for: task)
        let found = try #require(await lookup(task, in: cache))
        let response = try #require(found.response as? HTTPURLResponse)
        #expect(HeaderFields(response) == HeaderFields(dictionary: fields))
        #expect(found.data == stored.data && found.storagePolicy == .allowedInMemoryOnly)
        #expect(found.userInfo?["a"] as? String == "b")
        #expect(found.isSame(as: stored))
    }

    @Test func whatTheSuperclassTakesForOneStaysApart() {
        // The superclass on Linux drops the query from its key: its object for the other page must not be handed out.
        for page in ["1", "2", "1"] {
            let request = Responses.request("/list?page=\(page)")
            if cache.cachedResponse(for: request) == nil {
                cache.storeCachedResponse(Responses.cached(Responses.url("/list?page=\(page)"), page), for: request)
            }
            #expect(cache.cachedResponse(for: request)?.data == Data(page.utf8))
        }
    }

    @Test func partsAreNeitherStoredNorAnswered() {
        let url = Responses.url("/a")
        let part = Responses.request("/a", fields: ["Range": "bytes=0-1"])
        cache.storeCachedResponse(Responses.cached(url, "bo", status: 206), for: part)
        cache.storeCachedResponse(Responses.cached(url, "bo", status: 206), for: Responses.request("/a"))
        #expect(cache.cachedResponse(for: Responses.request("/a")) == nil)
        cache.storeCachedResponse(Responses.cached(url), for: Responses.request("/a"))
        #expect(cache.cachedResponse(for: part) == nil)
        #expect(cache.cachedResponse(for: Responses.request("/a")) != nil)
    }

    @Test func aResponseBelongsToTheRequestThatItAnswers() {
        let first = Responses.request("/a")
        let second = Responses.request("/b#part")
        func chosen(_ url: String?) -> URL? {
            SystemContract.request(
                original: first, current: second, answeredBy: url.map { Responses.url($0) })?.url
        }
        #expect(chosen("/b") == second.url)
        #expect(chosen("/a") == first.url)
        #expect(chosen("/c") == nil)
        #expect(chosen(nil) == second.url)
    }

    @Test func aRedirectIsNotStoredForWhereItLeads() {
        let task = plain.dataTask(with: Responses.url("/b"))
        let redirect = Responses.cached(Responses.url("/a"), "", status: 301, fields: ["Location": "/b"])
        cache.storeCachedResponse(redirect, for: task)
        #expect(cache.cachedResponse(for: Responses.request("/b")) == nil)
    }

    // MARK: What is made of a record

    /// As after a launch.
    private func forgetMemory(of other: DiskURLCache? = nil) {
        let cache = other ?? cache
        cache.flush()
        cache.removeAllCachedResponses(from: .memory)
    }

    @Test func whatMemoryHasIsTheObjectThatWasStored() async throws {
        let stored = Responses.cached(Responses.url("/a"), fields: ["Cache-Control": "max-age=60"])
        let task = plain.dataTask(with: Responses.url("/a"))
        cache.storeCachedResponse(stored, for: task)
        for _ in 1...2 { #expect(await lookup(task, in: cache) === stored) }
    }

    /// The system's loader, by descriptions of it, refuses what has a `Vary` and was not stored by Foundation's cache.
    @Test(arguments: [true, false], ["memory", "disk"])
    func whatTheSystemGetsHasTheFieldsOfTheOriginAndADate(_ hidesVary: Bool, _ layer: String) async throws {
        var platform = Platform.iOS
        platform.hidesVary = hidesVary
        let cache = Self.cache(scratch, platform)
        let url = Responses.url("/a")
        let fields = ["Cache-Control": "max-age=60", "Vary": "Accept-Encoding"]
        let task = plain.dataTask(with: url)
        let stored = Responses.cached(url, fields: fields)
        cache.storeCachedResponse(stored, for: task)
        // The object that is made for memory lasts from the time when the file is written.
        cache.flush()
        if layer == "disk" { forgetMemory(of: cache) }
        let found = try #require(await lookup(task, in: cache))
        if layer == "memory", !hidesVary {
            #expect(found === stored)
            return
        }
        let head = try #require(found.response as? HTTPURLResponse)
        #expect(head.value(forHTTPHeaderField: "Vary") == (hidesVary ? nil : "Accept-Encoding"))
        #expect(head.allHeaderFields.count == 3)
        let date = try #require(HTTPDate.parse(head.value(forHTTPHeaderField: "Date") ?? "", reference: Date()))
        #expect(abs(date.timeIntervalSinceNow) < 600)
        #expect(await lookup(task, in: cache) === found, "it is made once")

        // The system stores it anew when the origin has confirmed it, with the head that it was given.
        cache.storeCachedResponse(found, for: task)
        forgetMemory(of: cache)
        var other = URLRequest(url: url)
        other.setValue("br", forHTTPHeaderField: "Accept-Encoding")
        #expect(cache.cachedResponse(for: other) == nil)
        #expect(cache.cachedResponse(for: URLRequest(url: url))?.userInfo?.count == 1, "the number of the entry only")
    }

    @Test func theSuperclassKeepsNothing() async throws {
        let request = Responses.request("/a")
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "secret"), for: request)
        forgetMemory()
        let found = try #require(cache.cachedResponse(for: request))
        #expect(found.data == Data("secret".utf8) && found.entryNumber != nil)
        #expect(cache.superclassCopy(for: request).find() == nil)
    }

    /// The superclass stores on another queue: a removal after the lookup may come before that.
    @Test(arguments: ["one", "all", "memory"])
    func whatTheSuperclassStoredLateIsRemovedThere(_ what: String) async {
        let request = Responses.request("/a")
        let superclass = cache.superclassCopy(for: request)
        superclass.store(Responses.cached(Responses.url("/a"), "secret"))
        await eventually("the superclass's store") { superclass.find() != nil }
        switch what {
        case "one": cache.removeCachedResponse(for: request)
        case "all": cache.removeAllCachedResponses()
        default: cache.relieveMemoryPressure()
        }
        await eventually("the superclass's removal") { superclass.find() == nil }
    }

    // MARK: The system's threads

    /// Holds up the queue that writes what the system stores.
    private func withoutWriting(_ body: () async throws -> Void) async rethrows {
        let gate = Gate()
        cache.core.store.maintenance.enqueue { gate.wait() }
        defer { gate.open() }
        try await body()
    }

    private var recordCount: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: scratch.appending("cache/records").path))?.count ?? 0
    }

    @Test func whatTheSystemStoresIsInMemoryAtOnceAndInItsFileSoon() async throws {
        let task = plain.dataTask(with: Responses.url("/a"))
        let stored = Responses.cached(Responses.url("/a"))
        cache.flush()
        await withoutWriting {
            cache.storeCachedResponse(stored, for: task)
            #expect(await lookup(task, in: cache) === stored)
            #expect(recordCount == 0)
        }
        forgetMemory()
        #expect(recordCount == 1)
        #expect(await lookup(task, in: cache)?.data == stored.data)
    }

    /// The file is there a moment before memory hears of it: a lookup in between must take it for what memory has.
    @Test func aFileThatIsWrittenLaterHasTheNumberThatMemoryHas() async throws {
        let request = Responses.request("/a")
        let key = try #require(cache.core.key(for: request))
        var number: UInt64?
        await withoutWriting {
            cache.storeCachedResponse(Responses.cached(Responses.url("/a")), for: plain.dataTask(with: request))
            number = cache.core.store.lookup(key).variants().first?.metadata.sequence
        }
        forgetMemory()
        #expect(number != nil && cache.core.store.lookup(key).variants().first?.metadata.sequence == number)
    }

    @Test func whatIsPinnedBeforeItsFileIsWrittenIsPinnedThere() async throws {
        let request = Responses.request("/a")
        let key = try #require(cache.core.key(for: request))
        await withoutWriting {
            cache.storeCachedResponse(Responses.cached(Responses.url("/a")), for: plain.dataTask(with: request))
            #expect(cache.setPinned(true, for: request))
        }
        forgetMemory()
        #expect(cache.core.store.lookup(key).variants().first?.metadata.isPinned == true)
        #expect(cache.statistics.stores == 1, "it is stored, and said to be")
    }

    @Test func whatIsRemovedBeforeItsFileIsWrittenIsNotWritten() async throws {
        let task = plain.dataTask(with: Responses.url("/a"))
        cache.flush()
        await withoutWriting {
            cache.storeCachedResponse(Responses.cached(Responses.url("/a")), for: task)
            cache.removeCachedResponse(for: Responses.request("/a"))
            #expect(await lookup(task, in: cache) == nil)
        }
        cache.flush()
        #expect(await lookup(task, in: cache) == nil)
        #expect(recordCount == 0)
    }

    @Test func anObjectIsKeptAndAfterFiveFailuresTheSuperclassIsNotAsked() async throws {
        cache.superclassFailures.withLock { $0 = 4 }
        cache.storeCachedResponse(Responses.cached(Responses.url("/a")), for: Responses.request("/a"))
        forgetMemory()
        let task = plain.dataTask(with: Responses.url("/a"))
        let found = try #require(await lookup(task, in: cache))
        #expect(await lookup(task, in: cache) === found)
        #expect(cache.superclassFailures.withLock { $0 } == 0)

        cache.superclassFailures.withLock { $0 = 5 }
        forgetMemory()
        let own = try #require(await lookup(task, in: cache))
        #expect(await lookup(task, in: cache) === own, "it is at hand")
        #expect(cache.superclassFailures.withLock { $0 } == 5)
    }

    // MARK: What is learned of the system's loader

    /// The system's loader: asks for a response, and stores another one if it does not use it.
    private func load(_ path: String, vary: String?, of cache: DiskURLCache, refuses: Bool) async {
        let url = Responses.url(path)
        let task = plain.dataTask(with: url)
        if await lookup(task, in: cache) != nil, !refuses { return }
        var fields = ["Cache-Control": "max-age=600"]
        fields["Vary"] = vary
        cache.storeCachedResponse(Responses.cached(url, fields: fields), for: task)
    }

    private func problems(of cache: DiskURLCache, _ body: () async throws -> Void) async rethrows -> [String] {
        let found = Mutex<[String]>([])
        let id = cache.core.hub.addListener { event in
            if case .problem(let error) = event { found.withLock { $0.append(error.description) } }
        }
        try await body()
        cache.core.hub.removeListener(id)
        return found.withLock { $0 }
    }

    @Test func afterFiveRefusalsTheFormChangesAndThenTheAppIsTold() async {
        func hidden() -> Bool { cache.core.systemHits.withLock { $0.hidesVary } }
        #expect(hidden())
        let first = await problems(of: cache) {
            // The first load is a miss, one was cancelled.
            await load("/a", vary: "Accept-Encoding", of: cache, refuses: false)
            await load("/a", vary: "Accept-Encoding", of: cache, refuses: false)
            for _ in 1...4 { await load("/a", vary: "Accept-Encoding", of: cache, refuses: true) }
            #expect(hidden())
            await load("/a", vary: "Accept-Encoding", of: cache, refuses: true)
            #expect(!hidden())
        }
        #expect(first.count == 1 && first[0].contains("as the server sent it"))
        let task = plain.dataTask(with: Responses.url("/a"))
        let head = await lookup(task, in: cache)?.response as? HTTPURLResponse
        #expect(head?.value(forHTTPHeaderField: "Vary") == "Accept-Encoding")
        let second = await problems(of: cache) {
            for _ in 1...12 { await load("/a", vary: "Accept-Encoding", of: cache, refuses: true) }
        }
        #expect(second.count == 1 && second[0].contains("makeSession"))
        #expect(!hidden(), "it is not changed back")
    }

    @Test func responsesWithoutVaryThatAreRefusedAreTold() async {
        let told = await problems(of: cache) {
            for _ in 1...6 { await load("/a", vary: nil, of: cache, refuses: true) }
        }
        #expect(told.count == 1 && told[0].contains("makeSession"))
        #expect(cache.core.systemHits.withLock { $0.hidesVary })
    }

    @Test func aLoaderThatUsesMostOfWhatItGetsTeachesNothing() async {
        let told = await problems(of: cache) {
            for number in 1...40 { await load("/a", vary: "Accept", of: cache, refuses: number.isMultiple(of: 3)) }
            // Of a stale response, and at the wish of the request, another one is stored for good reason.
            for _ in 1...8 {
                let stale = plain.dataTask(with: Responses.url("/b"))
                _ = await lookup(stale, in: cache)
                let fields = ["Cache-Control": "max-age=0", "Vary": "Accept"]
                cache.storeCachedResponse(Responses.cached(Responses.url("/b"), fields: fields), for: stale)
                let reload = plain.dataTask(with: Responses.request("/a", fields: ["Cache-Control": "no-cache"]))
                _ = await lookup(reload, in: cache)
                cache.storeCachedResponse(
                    Responses.cached(Responses.url("/a"), fields: ["Vary": "Accept"]), for: reload)
            }
        }
        #expect(told.isEmpty)
        #expect(cache.core.systemHits.withLock { $0.hidesVary })
    }

    // MARK: The superclass's object

    /// A superclass that finds what it stored after some milliseconds.
    private final class SlowSuperclass {
        var stored: CachedURLResponse?
        var found: CachedURLResponse?
        var delay = 0
        var waited = 0
        var isRemoved = false

        var copy: SuperclassCopy {
            SuperclassCopy(
                store: { self.stored = $0 }, find: { self.waited >= self.delay ? self.found ?? self.stored : nil },
                remove: { self.isRemoved = true }, wait: { self.waited += $0 })
        }
    }

    private func made(_ number: UInt64) -> CachedURLResponse {
        let url = Responses.url("/a")
        let metadata = EntryMetadata(
            sequence: number, url: url.absoluteString,
            response: EntryMetadata.Response(
                Responses.http(url), fields: ["Cache-Control": "max-age=60"], method: "GET", vary: .none, time: Date()),
            storedAt: Date(), placement: .memoryAndDisk, userInfo: [:], tags: [], isPinned: false)
        return StoredEntry(metadata: metadata, body: Data("body".utf8))
            .makeSystemResponse(requestedURL: url, hidesVary: true)
    }

    @Test(arguments: [0, 40, 50, 60])
    func theSuperclasssObjectIsWaitedForFiftyMilliseconds(_ delay: Int) {
        let superclass = SlowSuperclass()
        superclass.delay = delay
        superclass.found = made(1)
        let own = made(1)
        let given = superclass.copy.copy(of: own)
        #expect(given === (delay <= 50 ? superclass.found : nil))
        #expect(superclass.waited <= 50)
        #expect(superclass.stored === own && superclass.isRemoved)
    }

    @Test func anotherEntrysObjectIsNotHandedOut() {
        let superclass = SlowSuperclass()
        let own = made(1)
        for other in [made(2), Responses.cached(Responses.url("/a"))] {
            superclass.found = other
            #expect(superclass.copy.copy(of: own) == nil)
        }
    }

    // MARK: Whose answer it is

    /// The request that the system shows lacks cookies, and what its session adds.
    @Test(arguments: ["Cookie", "Accept-Language, Cookie", "Authorization", "accept-language"])
    func twoAccountsNeverShareAPage(_ vary: String) async throws {
        let url = Responses.url("/account")
        let page = Responses.cached(url, "of A", fields: ["Cache-Control": "max-age=60", "Vary": vary])
        let events = cache.events()
        cache.storeCachedResponse(Responses.cached(url, "for all"), for: URLRequest(url: url))
        cache.storeCachedResponse(page, for: plain.dataTask(with: url))
        #expect(cache.cachedResponse(for: URLRequest(url: url)) == nil, "not the page of A, and not the one before it")
        forgetMemory()
        #expect(await lookup(plain.dataTask(with: url), in: cache) == nil)
        #expect(await events.notStored()?.reason == .varyUnseen)
        // Where the request shows the fields, they tell.
        func request(_ user: String) -> URLRequest {
            Responses.request("/account", fields: ["Cookie": user, "Authorization": user, "Accept-Language": user])
        }
        cache.storeCachedResponse(page, for: request("A"))
        #expect(cache.cachedResponse(for: request("A"))?.data == page.data)
        #expect(
            cache.cachedResponse(for: request("B")) == nil && cache.cachedResponse(for: URLRequest(url: url)) == nil)
    }

    /// The loader shows its cookies: what it stores for a user without any is not for one whose cookies the cache does
    /// not see.
    @Test func whatTheLoaderStoredForNoCookieIsNotGivenToTheSystem() async throws {
        let network = MemoryTransport { _, exchange in
            exchange.head(200, ["Cache-Control": "max-age=60", "Vary": "Cookie"])
            exchange.piece("for visitors")
            exchange.end()
        }
        _ = try await LoadReader(Responses.request("/a"), from: cache, over: network).answer()
        #expect(cache.contains(Responses.request("/a")))
        #expect(await lookup(plain.dataTask(with: Responses.url("/a")), in: cache) == nil)
    }

    @Test func whatTheSystemAddsWhileItSendsDoesNotChangeTheKeyButWhoAsksDoes() {
        let original = Responses.request("/a")
        let current = Responses.request("/a", fields: ["Accept-Encoding": "gzip", "Authorization": "A", "Cookie": "A"])
        let request = SystemContract.request(original: original, current: current, answeredBy: original.url)
        #expect(request?.allHTTPHeaderFields == ["Authorization": "A", "Cookie": "A"])
        // Those of another hop are not added.
        let elsewhere = Responses.request("/b", fields: ["Authorization": "A"])
        #expect(
            SystemContract.request(original: original, current: elsewhere, answeredBy: original.url)?
                .allHTTPHeaderFields?.isEmpty != false)
    }

    // MARK: Settings without effect

    @Test func settingsThatTheSystemDoesNotObeyAreTold() async throws {
        var settings = DiskURLCache.Configuration()
        #expect(settings.settingsOfLoader.isEmpty)
        settings.staleIfError = 60
        settings.staleWhileRevalidate = 60
        settings.usesHeuristicFreshness = false
        settings.minimumDiskLifetime = 60
        settings.cacheStatusName = "app"
        settings.willCacheResponse = { response, _ in response }
        settings.rules = [DiskURLCache.Rule(for: .host("example.com"), lifetime: .always(60))]
        settings.keyPolicies = ["graphQL": .standard.includingBody(ofMethods: "POST")]
        #expect(
            settings.settingsOfLoader == [
                "lifetimes of rules", "staleIfError", "staleWhileRevalidate", "usesHeuristicFreshness",
                "minimumDiskLifetime", "Configuration.willCacheResponse", "cacheStatusName",
                "includingBody(ofMethods:)",
            ])

        let events = cache.events()
        for isOffline in [false, true, true] {
            cache.isOffline = isOffline
            _ = await lookup(plain.dataTask(with: Responses.url("/a")), in: cache)
        }
        cache.hub.emit(.evicted(entries: 1, bytesOnDisk: 0))
        let all = Mutex<[DiskURLCache.Error]>([])
        _ = await events.first("the event of an eviction") { event -> Bool? in
            guard case .problem(let error) = event else { return true }
            all.withLock { $0.append(error) }
            return nil
        }
        let problems = all.withLock { $0 }
        #expect(problems.map(\.code) == [.settingsWithoutEffect])
        #expect(problems.first?.description.contains("isOffline") == true)
        #expect(problems.first?.description.contains("makeSession") == true)
    }

    @Test func eventsThatASlowReaderDoesNotGetAreCounted() async {
        let hub = EventHub { _ in }
        var events = hub.stream().makeAsyncIterator()
        for number in 0..<1_003 { hub.emit(.evicted(entries: number, bytesOnDisk: 0)) }
        #expect(hub.statistics.droppedEvents == 3)
        guard case .evicted(let oldest, _)? = await events.next() else {
            Issue.record("an event")
            return
        }
        #expect(oldest == 3)
    }

    /// Noticed by another load, it is the same mistake.
    @Test func aMissingLoaderIsToldOnceWhateverTheURL() {
        let lines = Mutex<[String]>([])
        let hub = EventHub { line in lines.withLock { $0.append(line) } }
        for path in ["/a", "/b"] {
            hub.report(once: DiskURLCache.Error(.loaderMissing, path: "https://example.com" + path))
        }
        // Without the path, which may say who the user is.
        #expect(lines.withLock { $0 } == [DiskURLCache.Error(.loaderMissing).description])
    }

    @Test func aProblemIsLoggedOnceAndSentOnceToTheFirstListener() async {
        let lines = Mutex<[String]>([])
        let hub = EventHub { line in lines.withLock { $0.append(line) } }
        let problem = DiskURLCache.Error(.settingsWithoutEffect, details: "isOffline")
        for _ in 1...2 { hub.report(once: problem) }
        #expect(lines.withLock { $0 } == [problem.description])
        let sent = Mutex(0)
        _ = hub.addListener { _ in sent.withLock { $0 += 1 } }
        for _ in 1...2 { hub.report(once: problem) }
        #expect(sent.withLock { $0 } == 1)
        #expect(lines.withLock { $0.count } == 1)
    }

    // MARK: Loading modes

    @Test func theClientIsCalledOnARunLoopOnlyWhereOneRuns() {
        #expect(ClientModes.modes(running: nil, common: "common") == nil, "a worker of the session's delegate queue")
        // Also while the user scrolls: that mode is a common one.
        #expect(ClientModes.modes(running: "default", common: "common") == ["common", "default"])
        #expect(ClientModes.modes(running: "own", common: "common") == ["common", "own"])
    }
}
