#if canImport(Darwin)
    import CoreFoundation
    import Foundation
    import Testing

    @testable import DiskURLCache

    // Never run by the project so far: it has no Apple machine. These are the behaviours that decide whether the
    // default on Apple platforms is right. `.ci/mac` runs them on a Mac, and prints a table of the claims that their
    // names are; CI also runs them in a simulator. Each counts requests at an origin on the loopback interface.

    /// A cache that writes down which of its methods the system calls.
    private final class LoggingCache: DiskURLCache, @unchecked Sendable {
        // @unchecked: the state is behind the lock.
        let calls = Mutex<[String]>([])

        private func note(_ call: String) { calls.withLock { $0.append(call) } }

        override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
            note("lookup")
            return super.cachedResponse(for: request)
        }
        override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for request: URLRequest) {
            note("store")
            super.storeCachedResponse(cachedResponse, for: request)
        }
        override func getCachedResponse(
            for dataTask: URLSessionDataTask, completionHandler: @escaping (CachedURLResponse?) -> Void
        ) {
            note("lookup for task")
            super.getCachedResponse(for: dataTask, completionHandler: completionHandler)
        }
        override func storeCachedResponse(_ cachedResponse: CachedURLResponse, for dataTask: URLSessionDataTask) {
            note("store for task")
            super.storeCachedResponse(cachedResponse, for: dataTask)
        }
        override func removeCachedResponse(for request: URLRequest) {
            note("removal")
            super.removeCachedResponse(for: request)
        }
        override func removeCachedResponse(for dataTask: URLSessionDataTask) {
            note("removal for task")
            super.removeCachedResponse(for: dataTask)
        }
    }

    /// The most memory that this process ever had, in bytes.
    private var peakMemory: Int {
        var usage = rusage()
        return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : 0
    }

    @Suite(.serialized, .timeLimit(.minutes(2))) struct AppleTests {
        private let scratch: ScratchDirectory

        init() throws {
            scratch = try ScratchDirectory("apple")
        }

        private func settings(
            _ name: String, _ superclassLimit: Int? = nil, hidesVary: Bool = Platform.current.hidesVary
        ) -> DiskURLCache.Configuration {
            var settings = DiskURLCache.Configuration(
                memoryCapacity: 8 << 20, diskCapacity: 64 << 20, directory: scratch.appending(name))
            if let superclassLimit { settings.platform.superclassLimit = superclassLimit }
            settings.platform.hidesVary = hidesVary
            return settings
        }

        private func cache(_ name: String = "cache") -> DiskURLCache { DiskURLCache(configuration: settings(name)) }

        /// URLSession's loading modes. Where the system is older than the second one, both are the first.
        enum Mode: CaseIterable, Sendable {
            case classic, new

            var configuration: URLSessionConfiguration {
                let configuration = URLSessionConfiguration.default.patient
                if #available(macOS 15.4, iOS 18.4, tvOS 18.4, watchOS 11.4, visionOS 2.4, *) {
                    configuration.usesClassicLoadingMode = self == .classic
                }
                return configuration
            }
        }

        /// A session of the system, with the cache by the URLCache contract.
        private func contractSession(_ cache: URLCache, _ mode: Mode = .classic) -> URLSession {
            let configuration = mode.configuration
            configuration.urlCache = cache
            return URLSession(configuration: configuration)
        }

        /// A session of the system with the cache, and one that was made for the loader; in each loading mode.
        struct Way: CaseIterable, Sendable {
            var isLoader: Bool
            var mode: Mode

            static let allCases = Mode.allCases.flatMap { mode in
                [false, true].map { Way(isLoader: $0, mode: mode) }
            }
        }

        private func session(
            _ way: Way, _ cache: DiskURLCache, delegate: (any URLSessionDelegate)? = nil
        ) -> URLSession {
            let configuration = way.mode.configuration
            // Tests share no cookies, and no credentials.
            configuration.httpCookieStorage = URLSessionConfiguration.ephemeral.httpCookieStorage
            configuration.urlCredentialStorage = nil
            if way.isLoader { return cache.makeSession(configuration: configuration, delegate: delegate) }
            cache.attach(to: configuration)
            return URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        }

        private func text(_ url: URL, _ session: URLSession) async throws -> String {
            String(decoding: try await session.data(from: url).0, as: UTF8.self)
        }

        // MARK: The contract

        @Test func initialisersLeaveCapacitiesAsGiven() {
            let caches = [
                DiskURLCache(memoryCapacity: 3 << 20, diskCapacity: 30 << 20, directory: scratch.appending("a")),
                DiskURLCache(memoryCapacity: 3 << 20, diskCapacity: 30 << 20, diskPath: scratch.appending("b").path),
                DiskURLCache(
                    configuration: .init(
                        memoryCapacity: 3 << 20, diskCapacity: 30 << 20, directory: scratch.appending("c"))),
            ]
            for cache in caches { #expect(cache.memoryCapacity == 3 << 20 && cache.diskCapacity == 30 << 20) }
        }

        /// `+new`, and the initialiser that is refined for Swift: as Objective-C calls them.
        @Test func objectiveCCanMakeACache() {
            let folder = scratch.appending("objective-c")
            let cache = DiskURLCache(__memoryCapacity: 3 << 20, diskCapacity: 30 << 20, directoryURL: folder)
            #expect(cache.memoryCapacity == 3 << 20 && cache.diskCapacity == 30 << 20)
            let standard = DiskURLCache()
            #expect(standard.memoryCapacity == DiskURLCache.Configuration().memoryCapacity)
        }

        /// Which loading mode a session has if nobody chooses one.
        @Test func theDefaultModeIsTold() {
            guard #available(macOS 15.4, iOS 18.4, tvOS 18.4, watchOS 11.4, visionOS 2.4, *) else {
                print("The system called: it has the classic mode alone")
                return
            }
            let isClassic = URLSessionConfiguration.default.usesClassicLoadingMode
            print("The system called: its default is the \(isClassic ? "classic" : "new") mode")
        }

        @Test func theSharedSessionUsesIt() async throws {
            let before = URLCache.shared
            defer { URLCache.shared = before }
            URLCache.shared = cache()
            let origin = try OriginServer.counting()
            for _ in 1...2 { #expect(try await text(origin.url("/a"), .shared) == "1") }
            #expect(origin.requests.count == 1)
        }

        /// What a later launch finds.
        private func forgetMemory(of cache: DiskURLCache) {
            cache.flush()
            cache.removeAllCachedResponses(from: .memory)
        }

        @Test(arguments: Mode.allCases) func anOwnSessionUsesItAndTheSystemCallsItsMethods(_ mode: Mode) async throws {
            let origin = try OriginServer.counting()
            let cache = LoggingCache(configuration: settings("cache"))
            let session = contractSession(cache, mode)
            for _ in 1...2 { #expect(try await text(origin.url("/a"), session) == "1") }
            #expect(origin.requests.count == 1)
            let calls = cache.calls.withLock { $0 }
            print("The system called: \(mode): \(calls)")
            #expect(calls.contains { $0.hasPrefix("lookup") } && calls.contains { $0.hasPrefix("store") })
        }

        @Test(arguments: Way.allCases, [true, false])
        func staleIsRevalidatedAndNeverServed(_ way: Way, _ isOnDisk: Bool) async throws {
            let origin = try OriginServer { request in
                request.fields["If-None-Match"] == nil
                    ? .ok("body", ["Cache-Control": "max-age=0", "ETag": "\"1\""]) : .status(304, "Not Modified")
            }
            let cache = cache()
            let session = session(way, cache)
            #expect(try await text(origin.url("/a"), session) == "body")
            if isOnDisk { forgetMemory(of: cache) }
            #expect(try await text(origin.url("/a"), session) == "body")
            #expect(origin.requests.count == 2)
            #expect(origin.requests.last?.fields["If-None-Match"] == "\"1\"")
        }

        @Test(arguments: Way.allCases) func twoCachesKeepApart(_ way: Way) async throws {
            let origin = try OriginServer.counting()
            #expect(try await text(origin.url("/a"), session(way, cache("one"))) == "1")
            #expect(try await text(origin.url("/a"), session(way, cache("two"))) == "2")
        }

        @Test func dataOfAURLEnds() async throws {
            let before = URLCache.shared
            defer { URLCache.shared = before }
            URLCache.shared = cache()
            let url = try OriginServer.counting().url("/a")
            let data = try await Task.detached { try Data(contentsOf: url) }.value
            #expect(!data.isEmpty)
        }

        @Test func noLockIsHeldWhenIdle() throws {
            var first = settings("cache")
            first.platform = .iOS
            let cache = DiskURLCache(configuration: first)
            cache.flush()
            let other = DiskStore(
                configuration: .init(directory: scratch.appending("cache").path, capacity: 1 << 20))
            other.flush()
            #expect(other.isOwner)
        }

        /// Where a hit comes from.
        enum Source: CaseIterable, Sendable { case memory, disk, newProcess }

        struct Situation: CaseIterable, Sendable {
            var source: Source
            var mode: Mode

            static let allCases = Source.allCases.flatMap { source in
                Mode.allCases.map { Situation(source: source, mode: $0) }
            }
        }

        private enum Hit { static let varies: [String?] = [nil, "Accept-Encoding"] }

        /// Most of the web has a `Vary`: one of these has to be true in each mode, and the cache learns which.
        @Test(arguments: Situation.allCases) func theSystemTakesAHitWithVaryHidden(_ situation: Situation) async throws
        {
            try await takesAHit("Accept-Encoding", situation, hidesVary: true)
        }

        @Test(arguments: Situation.allCases) func theSystemTakesAHitWithVaryShown(_ situation: Situation) async throws {
            try await takesAHit("Accept-Encoding", situation, hidesVary: false)
        }

        /// The table of *Apple platforms* says that the system asks a cache for the responses to `GET` alone.
        @Test(arguments: Mode.allCases, ["POST", "HEAD"])
        func theSystemAsksForGETAlone(_ mode: Mode, _ method: String) async throws {
            let origin = try OriginServer.counting()
            var settings = settings("cache")
            settings.keyPolicy = .standard.includingBody(ofMethods: "POST")
            let cache = LoggingCache(configuration: settings)
            let session = contractSession(cache, mode)
            let request = URLRequest(origin.url("/a"), method: method, body: method == "POST" ? Data("x".utf8) : nil)
            for _ in 1...2 { _ = try await LoadingHarness.load(request, in: session) }
            let calls = cache.calls.withLock { $0 }
            print("The system called: \(mode): \(method): \(calls)")
            #expect(origin.requests.count == 2)
        }

        /// Whether the system takes what is stored, if what is read from disk went through the superclass.
        @Test(arguments: Hit.varies, Situation.allCases)
        func theSystemTakesAHitByTheSuperclass(_ vary: String?, _ situation: Situation) async throws {
            try await takesAHit(vary, situation)
        }

        /// If this is true as well, `SuperclassCopy` is not needed.
        @Test(arguments: Hit.varies, Situation.allCases)
        func theSystemTakesAHitWithoutTheSuperclass(_ vary: String?, _ situation: Situation) async throws {
            try await takesAHit(vary, situation, superclassLimit: 0)
        }

        private func takesAHit(
            _ vary: String?, _ situation: Situation, superclassLimit: Int? = nil,
            hidesVary: Bool = Platform.current.hidesVary
        ) async throws {
            func settings(_ name: String) -> DiskURLCache.Configuration {
                self.settings(name, superclassLimit, hidesVary: hidesVary)
            }
            var fields: OriginFields = ["Cache-Control": "max-age=86400"]
            if let vary { fields.append("Vary", vary) }
            let origin = try OriginServer.counting(fields)
            var cache = DiskURLCache(configuration: settings("first"))
            #expect(try await text(origin.url("/a"), contractSession(cache, situation.mode)) == "1")
            cache.flush()
            switch situation.source {
            case .memory: break
            case .disk: cache.removeAllCachedResponses(from: .memory)
            case .newProcess:
                // Caches of one folder share their memory in one process: so a copy of the folder.
                try FileManager.default.copyItem(at: scratch.appending("first"), to: scratch.appending("second"))
                cache = DiskURLCache(configuration: settings("second"))
            }
            #expect(try await text(origin.url("/a"), contractSession(cache, situation.mode)) == "1")
            #expect(origin.requests.count == 1)
        }

        /// The system offers a cache no body above a twentieth of `diskCapacity`.
        @Test(arguments: Mode.allCases) func aBodyAboveATwentiethIsForTheLoader(_ mode: Mode) async throws {
            let body = testBody(1, length: 5 << 20)
            let origin = try OriginServer { _ in
                OriginResponse(fields: ["Cache-Control": "max-age=60"], body: body)
            }
            let cache = cache()
            let session = contractSession(cache, mode)
            for _ in 1...2 { #expect(try await session.data(from: origin.url("/a")).0 == body) }
            #expect(origin.requests.count == 2)
            let made = cache.makeSession(configuration: mode.configuration)
            for _ in 1...2 { #expect(try await made.data(from: origin.url("/b")).0 == body) }
            #expect(origin.requests.count == 3)
        }

        @Test(arguments: Situation.allCases) func whatIsRemovedIsNotServed(_ situation: Situation) async throws {
            let origin = try OriginServer.counting()
            let cache = cache()
            let session = contractSession(cache, situation.mode)
            #expect(try await text(origin.url("/a"), session) == "1")
            if situation.source == .disk {
                cache.flush()
                cache.removeAllCachedResponses(from: .memory)
                #expect(try await text(origin.url("/a"), session) == "1")
            }
            if situation.source == .newProcess {
                cache.removeAllCachedResponses()
            } else {
                cache.removeCachedResponse(for: URLRequest(url: origin.url("/a")))
            }
            #expect(try await text(origin.url("/a"), session) == "2")
        }

        /// Credentials of the configuration are in the request that the cache is shown, or else the answers are not
        /// shared.
        @Test(arguments: Mode.allCases) func accountsOfTwoConfigurationsKeepApart(_ mode: Mode) async throws {
            let origin = try OriginServer {
                .ok($0.fields["Authorization"] ?? "none", ["Cache-Control": "max-age=86400"])
            }
            let cache = cache()
            var answers: [String] = []
            for user in ["one", "two"] {
                let configuration = mode.configuration
                configuration.httpAdditionalHeaders = ["Authorization": user]
                configuration.urlCache = cache
                answers.append(try await text(origin.url("/a"), URLSession(configuration: configuration)))
            }
            // "Privacy with the system's loader" says that this may be so. The answer tells whether it is.
            print("The system called: \(mode): two accounts of one cache got \(answers)")
            withKnownIssue(isIntermittent: true) { #expect(answers == ["one", "two"]) }
        }

        /// Files that the superclass may write, in the folders of this process: others may write theirs meanwhile.
        private func databases() -> Set<String> {
            let files = FileManager.default
            let names = [Bundle.main.bundleIdentifier, ProcessInfo.processInfo.processName, "DiskURLCache"]
            var folders = [scratch.url, Platform.superclassDirectory]
            for parent in files.urls(for: .cachesDirectory, in: .userDomainMask) + [files.temporaryDirectory] {
                folders += names.compactMap { $0 }.map { parent.appendingPathComponent($0) }
            }
            var found: Set<String> = []
            for folder in folders {
                guard let names = files.enumerator(atPath: folder.path) else { continue }
                for case let path as String in names {
                    let file = folder.appendingPathComponent(path)
                    let name = file.lastPathComponent
                    if name.hasPrefix("Cache.db") || name == "fsCachedData" { found.insert(file.path) }
                }
            }
            return found
        }

        @Test func noDatabaseIsLeftAnywhere() async throws {
            let before = databases()
            let origin = try OriginServer.counting()
            let cache = cache()
            let session = contractSession(cache)
            for number in 1...100 { _ = try await text(origin.url("/\(number)"), session) }
            cache.flush()
            cache.removeAllCachedResponses(from: .memory)
            for number in 1...100 { _ = try await text(origin.url("/\(number)"), session) }
            cache.removeCachedResponse(for: URLRequest(url: origin.url("/1")))
            cache.relieveMemoryPressure()
            cache.removeAllCachedResponses()
            #expect(databases().subtracting(before) == [])
        }

        // MARK: Either way

        @Test(arguments: Way.allCases) func rejectedTrustFailsTheLoadAfterAHitToo(_ way: Way) async throws {
            let origin = try await TLSOrigin()
            let cache = cache()
            let trusting = TrustDelegate(isTrusting: true)
            let first = session(way, cache, delegate: trusting)
            for _ in 1...2 { #expect(try await text(origin.url("/a"), first) == "1") }
            #expect(origin.requests.withLock { $0 } == 1)
            #expect(trusting.challenges.withLock { $0 } > 0)

            let rejecting = TrustDelegate(isTrusting: false)
            let second = session(way, cache, delegate: rejecting)
            await #expect(throws: URLError.self) { try await text(origin.url("/b"), second) }
            // What is stored needs no connection. What is asked of the origin does.
            #expect(try await text(origin.url("/a"), second) == "1")
            let again = URLRequest(origin.url("/a"), policy: .reloadIgnoringLocalCacheData)
            await #expect(throws: URLError.self) { try await second.data(for: again) }
            #expect(rejecting.challenges.withLock { $0 } > 0)
            #expect(origin.requests.withLock { $0 } == 1)
            #expect(!cache.contains(URLRequest(origin.url("/b"))))
        }

        @Test(arguments: Way.allCases) func theFirstChunkArrivesBeforeTheEnd(_ way: Way) async throws {
            let gate = Gate()
            let body = testBody(1, length: 65_536)
            let origin = try OriginServer { _ in
                OriginResponse(
                    fields: ["Cache-Control": "max-age=60", "Content-Type": "application/octet-stream"], body: body,
                    partSize: 32_768, beforePart: { if $0 == 1 { gate.wait() } })
            }
            let delegate = RecordingDelegate()
            let task = session(way, cache(), delegate: delegate).dataTask(with: origin.url("/a"))
            task.resume()
            let start = await delegate.record(of: task) { !$0.chunks.isEmpty || !$0.ends.isEmpty }
            #expect(start.ends.isEmpty && start.data.count < body.count)
            gate.open()
            #expect(await delegate.end(of: task).data == body)
        }

        /// "hello " 200 times, by gzip.
        private static let coded =
            Data(base64Encoded: "H4sIAAAAAAACA8tIzcnJV8gYJUfJUXKUHPQkAEVEn2iwBAAA") ?? Data()
        private static let decoded = String(repeating: "hello ", count: 200)

        @Test(arguments: Way.allCases, [true, false])
        func aCodedBodyLooksTheSameColdAndWarm(_ way: Way, _ isOnDisk: Bool) async throws {
            let origin = try OriginServer { _ in
                OriginResponse(
                    fields: ["Cache-Control": "max-age=60", "Content-Encoding": "gzip", "Content-Type": "text/plain"],
                    body: Self.coded)
            }
            let without = URLSession(configuration: .ephemeral.patient)
            let stock = try await LoadingHarness.load(URLRequest(origin.url("/a")), in: without)
            let cache = cache()
            let session = session(way, cache)
            for _ in 1...2 {
                let loaded = try await LoadingHarness.load(URLRequest(origin.url("/a")), in: session)
                #expect(loaded.text == Self.decoded)
                #expect(loaded["Content-Length"] == stock["Content-Length"])
                #expect(loaded["Content-Encoding"] == stock["Content-Encoding"])
                #expect(loaded.response.expectedContentLength == stock.response.expectedContentLength)
                if isOnDisk { forgetMemory(of: cache) }
            }
            #expect(origin.requests.count == 2)
        }

        /// openradar 32270378: after a 304 a coded response never became fresh again.
        @Test(arguments: Way.allCases) func aCodedBodyIsFreshAgainAfterA304(_ way: Way) async throws {
            let origin = try OriginServer { request in
                if request.fields["If-None-Match"] != nil {
                    return .status(304, "Not Modified", ["Cache-Control": "max-age=86400", "ETag": "\"1\""])
                }
                return OriginResponse(
                    fields: [
                        "Cache-Control": "max-age=0", "ETag": "\"1\"", "Content-Encoding": "gzip",
                        "Content-Type": "text/plain",
                    ], body: Self.coded)
            }
            let session = session(way, cache())
            for _ in 1...3 { #expect(try await text(origin.url("/a"), session) == Self.decoded) }
            #expect(origin.requests.count == 2)
        }

        /// What the system's threads are given: each lookup comes back, however many there are.
        @Test(arguments: Way.allCases) func sixtyFourHitsFromDiskAtOnce(_ way: Way) async throws {
            let origin = try OriginServer { .ok($0.path, ["Cache-Control": "max-age=86400"]) }
            let cache = cache()
            let session = session(way, cache)
            let paths = (0..<64).map { "/\($0)" }
            for path in paths { _ = try await text(origin.url(path), session) }
            forgetMemory(of: cache)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for path in paths {
                    group.addTask {
                        let loaded = try await text(origin.url(path), session)
                        #expect(loaded == path)
                    }
                }
                try await group.waitForAll()
            }
            #expect(origin.requests.count == 64)
        }

        /// The object that the system stored, and the body that the cache counts, are one copy.
        @Test(arguments: Way.allCases) func memoryIsCountedOnce(_ way: Way) async throws {
            let (count, size) = (48, 1 << 20)
            let origin = try OriginServer { request in
                OriginResponse(
                    fields: ["Cache-Control": "max-age=86400"],
                    body: testBody(Int(request.path.dropFirst()) ?? 0, length: size))
            }
            let cache = DiskURLCache(
                memoryCapacity: 128 << 20, diskCapacity: 256 << 20, directory: scratch.appending("cache"))
            let session = session(way, cache)
            // What the first load needs besides is not counted.
            _ = try await session.data(from: origin.url("/0"))
            let before = peakMemory
            for number in 1...count { _ = try await session.data(from: origin.url("/\(number)")) }
            #expect(cache.currentMemoryUsage > count * size)
            #expect(peakMemory - before < count * size * 3 / 2)
        }

        @Test(arguments: Way.allCases) func aCookieComesBack(_ way: Way) async throws {
            let origin = try OriginServer { request in
                .ok(request.fields["Cookie"] ?? "none", ["Set-Cookie": "user=1; Path=/"])
            }
            let session = session(way, cache())
            #expect(try await text(origin.url("/a"), session) == "none")
            #expect(try await text(origin.url("/b"), session) == "user=1")
        }

        /// openradar 34329423: the system handles no cookies of a protocol's responses. The inner session does.
        @Test(arguments: Mode.allCases) func theLoaderKeepsTheCookiesOfTheApp(_ mode: Mode) async throws {
            let origin = try OriginServer { request in
                .ok(request.fields["Cookie"] ?? "none", ["Set-Cookie": "kept=1; Path=/; Max-Age=600"])
            }
            let storage = HTTPCookieStorage.shared
            func cookies() -> [HTTPCookie] {
                storage.cookies(for: origin.url("/a"))?.filter { $0.name == "kept" } ?? []
            }
            for cookie in cookies() { storage.deleteCookie(cookie) }
            defer { for cookie in cookies() { storage.deleteCookie(cookie) } }
            let cache = cache()
            for expected in ["none", "kept=1"] {
                let session = cache.makeSession(configuration: mode.configuration)
                #expect(try await text(origin.url("/\(expected.count)"), session) == expected)
            }
            #expect(cookies().count == 1)
        }

        // MARK: Times

        /// Milliseconds, the median of some rounds.
        private func milliseconds(_ rounds: Int, _ work: (Int) async throws -> Void) async rethrows -> Double {
            var times: [Double] = []
            for round in 0..<rounds {
                let start = DispatchTime.now().uptimeNanoseconds
                try await work(round)
                times.append(Double(DispatchTime.now().uptimeNanoseconds - start) / 1e6)
            }
            return (times.sorted()[rounds / 2] * 1_000).rounded() / 1_000
        }

        /// Beside the system's own cache. No time is judged: the rows are for a person to read.
        @Test(arguments: Mode.allCases) func timesBesideTheSystemsCache(_ mode: Mode) async throws {
            let origin = try OriginServer { request in
                OriginResponse(
                    fields: ["Cache-Control": "max-age=86400", "Content-Type": "text/plain"],
                    body: testBody(request.path.count, length: 16 << 10))
            }
            func stock(_ name: String) -> URLCache {
                URLCache(
                    memoryCapacity: 8 << 20, diskCapacity: 64 << 20, directory: scratch.appending("stock-\(name)"))
            }
            let (own, system) = (cache("times-\(mode)"), stock("\(mode)"))
            let sessions = [
                ("system's cache", contractSession(system, mode)),
                ("this cache, system's loader", contractSession(own, mode)),
                ("this cache, makeSession", own.makeSession(configuration: mode.configuration)),
                ("no cache", contractSession(stock("none"), mode)),
            ]
            for (name, session) in sessions {
                let isCached = name != "no cache"
                let label = name.replacingOccurrences(of: " ", with: "-")
                func url(_ number: Int) -> URL { origin.url("/\(label)/\(number)") }
                let first = try await milliseconds(50) { _ = try await session.data(from: url($0)) }
                print("Time: \(mode) mode: first load, stored | \(name) | \(first)")
                guard isCached else { continue }
                let hit = try await milliseconds(200) { _ = try await session.data(from: url($0 % 50)) }
                print("Time: \(mode) mode: hit | \(name) | \(hit)")
            }
            for (name, cache) in [("system's cache", system), ("this cache", own as URLCache)] {
                let request = URLRequest(url: origin.url("/direct"))
                let response = Responses.cached(origin.url("/direct"), String(repeating: "x", count: 16 << 10))
                let store = await milliseconds(200) { _ in cache.storeCachedResponse(response, for: request) }
                print("Time: \(mode) mode: storeCachedResponse | \(name) | \(store)")
                let find = await milliseconds(200) { _ in _ = cache.cachedResponse(for: request) }
                print("Time: \(mode) mode: cachedResponse | \(name) | \(find)")
            }
            guard mode == .classic else { return }
            own.flush()
            var opened: [URLCache] = []
            let openStock = await milliseconds(20) { opened.append(stock("open-\($0)")) }
            let openOwn = await milliseconds(20) { opened.append(cache("open-\($0)")) }
            print("Time: at launch: init | system's cache | \(openStock)")
            print("Time: at launch: init | this cache | \(openOwn)")
        }

        // MARK: Sessions made for the loader

        @Test(arguments: Mode.allCases, [true, false]) func theLoaderCaches(_ mode: Mode, _ isOnMain: Bool) async throws
        {
            let origin = try OriginServer.counting()
            let cache = cache()
            let session = cache.makeSession(
                configuration: mode.configuration, delegate: nil, delegateQueue: isOnMain ? .main : nil)
            #expect(session.configuration.urlCache == nil, "the system would look a second time")
            for _ in 1...2 { #expect(try await text(origin.url("/a"), session) == "1") }
            #expect(origin.requests.count == 1)
            let statistics = cache.statistics
            #expect(statistics.memoryHits + statistics.diskHits + statistics.misses <= 2, "one lookup a load")
        }

        /// While the user scrolls, the run loop of the main thread is in another mode, which is a common one.
        @Test(arguments: Mode.allCases) func aLoadOfTheMainQueueGoesOnWhileTheUserScrolls(_ mode: Mode) async throws {
            let origin = try OriginServer.counting()
            let session = cache().makeSession(configuration: mode.configuration, delegate: nil, delegateQueue: .main)
            let tracking = CFRunLoopMode(rawValue: "DiskURLCache.tracking" as CFString)
            CFRunLoopAddCommonMode(CFRunLoopGetMain(), tracking)
            let url = origin.url("/a")
            let hasEnded = Mutex<Bool?>(nil)
            let isLoaded = Mutex(false)
            // Not in a block of the main queue, which would hold up the queue itself.
            CFRunLoopPerformBlock(CFRunLoopGetMain(), CFRunLoopMode.defaultMode.rawValue) {
                session.dataTask(with: url) { _, _, _ in isLoaded.withLock { $0 = true } }.resume()
                for _ in 0..<50 where !isLoaded.withLock({ $0 }) { CFRunLoopRunInMode(tracking, 0.1, true) }
                hasEnded.withLock { $0 = isLoaded.withLock { $0 } }
            }
            CFRunLoopWakeUp(CFRunLoopGetMain())
            await eventually("the run loop of the main thread") { hasEnded.withLock { $0 != nil } }
            #expect(hasEnded.withLock { $0 } == true)
        }

        @Test(arguments: Mode.allCases) func sessionsAreToldApartByTheirClasses(_ mode: Mode) async throws {
            let origin = try OriginServer.counting()
            let sessions = ["one", "two"].map { cache($0).makeSession(configuration: mode.configuration) }
            for (number, session) in sessions.enumerated() {
                let loader = try #require(
                    session.configuration.protocolClasses?.first { CachingURLProtocol.isLoader($0) }
                        as? CachingURLProtocol.Type)
                #expect(SessionClasses.shared.session(of: loader) === session)
                #expect(try await text(origin.url("/a"), session) == "\(number + 1)")
            }
        }

        @Test func aSessionThatIsGoneLeavesItsCacheAndItsClass() async throws {
            let origin = try OriginServer.counting()
            weak var cache: DiskURLCache?
            weak var session: URLSession?
            do {
                let made = self.cache()
                let madeSession = made.makeSession(configuration: .ephemeral.patient)
                cache = made
                session = madeSession
                _ = try await text(origin.url("/a"), madeSession)
                madeSession.finishTasksAndInvalidate()
            }
            await eventually("the release of session and cache") { session == nil && cache == nil }
            // The next session ends what the first one left behind.
            let next = self.cache("next").makeSession(configuration: .ephemeral.patient)
            _ = try await text(origin.url("/a"), next)
            #expect(NetworkSessions.shared.sessions.withLock { $0.values.allSatisfy { $0.session != nil } })
        }

        @Test func webSocketsAreLeftAlone() async throws {
            let origin = try OriginServer { _ in .status(404, "Not Found", ["Cache-Control": "max-age=60"]) }
            let cache = cache()
            let url = try #require(URL(string: "ws://127.0.0.1:\(origin.port)/socket"))
            let task = cache.makeSession(configuration: .default.patient).webSocketTask(with: url)
            task.resume()
            await #expect(throws: (any Error).self) { _ = try await task.receive() }
            #expect(origin.requests.first?.fields["Sec-WebSocket-Key"] != nil, "the system opens the connection")
            #expect(cache.statistics.stores == 0)
        }

        /// No session is made: a process without an app has no background sessions.
        @Test func aBackgroundConfigurationGetsNoLoader() {
            let configuration = URLSessionConfiguration.background(withIdentifier: UUID().uuidString)
            #expect(
                LoadingSystem.makeSession(configuration, cache: cache(), delegate: nil, delegateQueue: nil) == nil)
        }

        /// As a copy of a session's configuration makes, once that session is gone.
        @Test func aTaskWhoseSessionIsNotKnownIsLeftToTheSystem() async throws {
            let origin = try OriginServer.counting()
            let configuration = URLSessionConfiguration.ephemeral.patient
            configuration.protocolClasses = [CachingURLProtocol.self]
            let session = URLSession(configuration: configuration)
            for number in 1...2 { #expect(try await text(origin.url("/a"), session) == "\(number)") }
        }

        @Test func aPostAnswered303IsSentOnce() async throws {
            let origin = try OriginServer { request in
                request.method == "POST" ? .status(303, "See Other", ["Location": "/b"]) : .ok("b")
            }
            var settings = settings("cache")
            settings.keyPolicy = .standard.includingBody(ofMethods: "POST")
            let session = DiskURLCache(configuration: settings).makeSession(configuration: .default.patient)
            let request = URLRequest(origin.url("/a"), method: "POST", body: Data("x".utf8))
            #expect(try await LoadingHarness.load(request, in: session).text == "b")
            #expect(origin.requests.map(\.method) == ["POST", "GET"])
        }

        @Test func configuredAuthorizationArrivesAndIsKeyed() async throws {
            let origin = try OriginServer {
                .ok($0.fields["Authorization"] ?? "none", ["Cache-Control": "max-age=86400"])
            }
            let cache = cache()
            for user in ["one", "two"] {
                let configuration = URLSessionConfiguration.default.patient
                configuration.httpAdditionalHeaders = ["Authorization": user]
                #expect(try await text(origin.url("/a"), cache.makeSession(configuration: configuration)) == user)
            }
        }

        @Test func anEphemeralSessionLeavesSharedCookiesAlone() async throws {
            let origin = try OriginServer { _ in .ok("x", ["Set-Cookie": "apple-test=1; Path=/"]) }
            _ = try await text(origin.url("/a"), cache().makeSession(configuration: .ephemeral.patient))
            #expect(
                HTTPCookieStorage.shared.cookies(for: origin.url("/a"))?.contains { $0.name == "apple-test" } != true)
        }

        @Test(arguments: [true, false]) func a401IsForTheDelegate(_ hasPassword: Bool) async throws {
            let origin = try OriginServer { request in
                request.fields["Authorization"] != nil
                    ? .ok("secret", ["Cache-Control": "max-age=86400"])
                    : .status(401, "Unauthorized", ["WWW-Authenticate": "Basic realm=\"r\""])
            }
            let cache = cache()
            let delegate = AnsweringDelegate(
                hasPassword ? URLCredential(user: "a", password: "b", persistence: .none) : nil)
            let session = cache.makeSession(configuration: .ephemeral.patient, delegate: delegate)
            let loaded = try await LoadingHarness.load(URLRequest(origin.url("/a")), in: session)
            #expect(loaded.status == (hasPassword ? 200 : 401))
            #expect(delegate.challenges.withLock { $0 } > 0)
            #expect(!cache.contains(URLRequest(origin.url("/a"))), "the key does not tell whose it is")
        }

        @Test func theRedirectDelegateIsAsked() async throws {
            let origin = try OriginServer { request in
                request.path == "/a" ? .status(302, "Found", ["Location": "/b"]) : .ok("b")
            }
            let delegate = RecordingDelegate()
            let session = cache().makeSession(configuration: .default.patient, delegate: delegate)
            let record = await delegate.run(session.dataTask(with: origin.url("/a")))
            #expect(record.redirects.count == 1 && record.data == Data("b".utf8))
        }

        /// A start, a stop and the client's calls may come on different threads, at the same time.
        @Test(arguments: Mode.allCases, [1, 4])
        func cancellingManyLoadsEndsEach(_ mode: Mode, _ operations: Int) async throws {
            let origin = try OriginServer.counting()
            let delegate = RecordingDelegate()
            let queue = OperationQueue()
            queue.maxConcurrentOperationCount = operations
            let session = cache().makeSession(
                configuration: mode.configuration, delegate: delegate, delegateQueue: queue)
            for number in 0..<200 {
                let task = session.dataTask(with: origin.url("/\(number % 5)"))
                task.resume()
                if number % 2 == 0 { task.cancel() }
                #expect(await delegate.end(of: task).ends.count == 1)
            }
        }

        @Test func downloadsAndUploadsAreLeftAlone() async throws {
            let origin = try OriginServer {
                .ok(String(decoding: $0.body, as: UTF8.self) + "!", ["Cache-Control": "max-age=60"])
            }
            let cache = cache()
            let session = cache.makeSession(configuration: .default.patient)
            let (file, _) = try await session.download(from: origin.url("/a"))
            #expect(Data(taking: file) == Data("!".utf8))
            let request = URLRequest(origin.url("/b"), method: "POST")
            let (data, _) = try await session.upload(for: request, from: Data("up".utf8))
            #expect(data == Data("up!".utf8))
            #expect(cache.statistics.stores == 0)
        }
    }

    /// Takes any certificate, or none.
    private final class TrustDelegate: NSObject, URLSessionDelegate, Sendable {
        let challenges = Mutex(0)
        private let isTrusting: Bool

        init(isTrusting: Bool) {
            self.isTrusting = isTrusting
        }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            challenges.withLock { $0 += 1 }
            guard isTrusting, let trust = challenge.protectionSpace.serverTrust else {
                return completionHandler(.cancelAuthenticationChallenge, nil)
            }
            completionHandler(.useCredential, URLCredential(trust: trust))
        }
    }

    /// Answers each challenge with one credential, or rejects it.
    private final class AnsweringDelegate: NSObject, URLSessionTaskDelegate, Sendable {
        let challenges = Mutex(0)
        private let credential: URLCredential?

        init(_ credential: URLCredential?) {
            self.credential = credential
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            challenges.withLock { $0 += 1 }
            completionHandler(credential == nil ? .rejectProtectionSpace : .useCredential, credential)
        }
    }
#endif
