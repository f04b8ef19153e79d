import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Who has a say in what is stored, what outlives a restart, and what is told of each load.
@Suite(.loadsOnLinux, .fewAtATime) struct LoaderStoringTests {
    // MARK: The delegate

    private final class Editor: RecordingDelegate, @unchecked Sendable {
        let edit: @Sendable (CachedURLResponse) -> CachedURLResponse?
        init(_ edit: @escaping @Sendable (CachedURLResponse) -> CachedURLResponse?) { self.edit = edit }

        override func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
            completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
        ) {
            completionHandler(edit(proposedResponse))
        }
    }

    @Test func delegateRefusesToStore() async throws {
        let origin = try OriginServer.counting()
        let delegate = Editor { _ in nil }
        let harness = try LoadingHarness(delegate: delegate)
        let events = harness.cache.events()
        #expect(await delegate.run(harness.session.dataTask(with: origin.url("/a"))).data == Data("1".utf8))
        for await case .load(let report) in events {
            #expect(report.isStored == false && report.notStoredReason == .refused)
            #expect(report.notStoredReason?.description.contains("delegate") == true)
            break
        }
        #expect(!harness.cache.contains(URLRequest(origin.url("/a"))))
    }

    @Test func delegateEditsWhatIsStoredAndNotWhatIsDelivered() async throws {
        let origin = try OriginServer.counting()
        let delegate = Editor { proposed in
            CachedURLResponse(
                response: Responses.http(
                    proposed.response.url ?? Responses.url(), status: 203,
                    fields: ["Cache-Control": "max-age=60", "X-Edited": "yes"]),
                data: Data("edited".utf8), userInfo: ["mark": 7, "object": NSObject()],
                storagePolicy: .allowedInMemoryOnly)
        }
        let harness = try LoadingHarness(delegate: delegate)
        let task = harness.session.dataTask(with: origin.url("/a"))
        #expect(await delegate.run(task).data == Data("1".utf8))
        let loaded = try await harness.load(origin.url("/a"))
        #expect(loaded.text == "edited" && loaded.status == 203 && loaded["X-Edited"] == "yes")
        let stored = harness.cache.cachedResponse(for: URLRequest(origin.url("/a")))
        #expect(stored?.userInfo?["mark"] as? Int == 7 && stored?.userInfo?["object"] != nil)
        harness.cache.removeAllCachedResponses(from: .memory)
        #expect(!harness.cache.contains(URLRequest(origin.url("/a"))))
    }

    // MARK: `Configuration.willCacheResponse`

    @Test func admissionRefusesAndEdits() async throws {
        let origin = try OriginServer { request in
            request.path == "/redirect"
                ? .status(301, "", ["Location": "/a", "Cache-Control": "max-age=60"])
                : .ok("{\"returnCode\": 1}", ["Cache-Control": "max-age=60"])
        }
        let asked = Mutex<[String]>([])
        let harness = try LoadingHarness(configure: { settings in
            settings.willCacheResponse = { response, request in
                let path = request.url?.path ?? ""
                asked.withLock { $0.append(path) }
                switch path {
                case "/edit": return CachedURLResponse(response: response.response, data: Data("edited".utf8))
                case "/forbid": return response.copy(policy: .notAllowed)
                case "/memory": return response.copy(policy: .allowedInMemoryOnly)
                case "/keep": return response
                default: return nil
                }
            }
        })
        let events = harness.cache.events()
        for path in ["/refuse", "/edit", "/forbid", "/memory", "/keep"] { try await harness.load(origin.url(path)) }
        for await case .load(let report) in events {
            #expect(report.notStoredReason?.description.contains("willCacheResponse") == true, "the first one")
            break
        }
        #expect(!harness.cache.contains(URLRequest(origin.url("/forbid"))))
        #expect(!harness.cache.contains(URLRequest(origin.url("/refuse"))))
        #expect(try await harness.load(origin.url("/edit")).text == "edited")
        #expect(harness.cache.contains(URLRequest(origin.url("/keep"))))
        // A redirect is a response as any other.
        try await harness.load(origin.url("/redirect"))
        #expect(!harness.cache.contains(URLRequest(origin.url("/redirect"))))
        #expect(asked.withLock { $0 } == ["/refuse", "/edit", "/forbid", "/memory", "/keep", "/redirect", "/a"])
        harness.cache.flush()
        harness.cache.removeAllCachedResponses(from: .memory)
        #expect(harness.cache.contains(URLRequest(origin.url("/keep"))))
        #expect(!harness.cache.contains(URLRequest(origin.url("/memory"))))
    }

    // MARK: Size

    @Test(arguments: [true, false]) func whatIsTooLargeIsDeliveredAndNotStored(isDelegateTask: Bool) async throws {
        let body = Data(repeating: 1, count: 300_000)
        let origin = try OriginServer { request in
            OriginResponse(
                fields: ["Cache-Control": "max-age=1"], body: request.number == 1 ? Data("small".utf8) : body)
        }
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(
            delegate: delegate,
            configure: { settings in
                settings.memoryCapacity = 200_000
                settings.diskCapacity = 0
            })
        try await harness.load(origin.url("/a"))
        harness.clock.advance(by: 5)
        let events = harness.cache.events()
        if isDelegateTask {
            let record = await delegate.run(harness.session.dataTask(with: origin.url("/a")))
            #expect(record.data == body)
        } else {
            #expect(try await harness.load(origin.url("/a")).data == body)
        }
        for await case .load(let report) in events {
            #expect(report.isStored == false)
            #expect(
                report.notStoredReason?.description
                    == DiskURLCache.Reason.tooLarge(bytes: 300_000, limit: 100_000).description)
            break
        }
        #expect(!harness.cache.contains(URLRequest(origin.url("/a"))))
    }

    // MARK: A 304

    @Test func a304FreshensOnDiskToo() async throws {
        let origin = try OriginServer { request in
            request.fields["If-None-Match"] != nil
                ? .status(304, "", ["ETag": "\"e\"", "Cache-Control": "max-age=60", "X-A": "new"])
                : .ok("body", ["ETag": "\"e\"", "Cache-Control": "max-age=1", "X-A": "old"])
        }
        let scratch = try ScratchDirectory("freshen")
        let clock = ManualClock()
        do {
            let harness = try LoadingHarness(directory: scratch, clock: clock)
            try await harness.load(origin.url("/a"))
            clock.advance(by: 10)
            let loaded = try await harness.load(origin.url("/a"))
            #expect(loaded.text == "body" && loaded["X-A"] == "new" && loaded.status == 200)
            harness.cache.flush()
        }
        let reopened = try LoadingHarness(directory: scratch, clock: clock)
        clock.advance(by: 20)
        let loaded = try await reopened.load(origin.url("/a"))
        #expect(loaded.text == "body" && loaded["X-A"] == "new" && loaded["Age"] == "20")
        #expect(origin.requests.count == 2)
    }

    // MARK: Restart

    @Test func everythingOutlivesARestart() async throws {
        let origin = try OriginServer { request in
            OriginResponse(
                fields: ["Cache-Control": "max-age=60", "Vary": "Accept-Language", "X-A": request.path],
                body: Data((request.path + (request.fields["Accept-Language"] ?? "")).utf8))
        }
        let scratch = try ScratchDirectory("restart")
        let clock = ManualClock()
        let paths = ["/a", "/b?x=1", "/b?x=2"]
        for round in 1...3 {
            let harness = try LoadingHarness(directory: scratch, clock: clock)
            for path in paths {
                for language in ["en", "de"] {
                    let report = try await harness.report {
                        let loaded = try await harness.load(origin.url(path), ["Accept-Language": language])
                        #expect(loaded.text.hasSuffix(language) && loaded["X-A"]?.isEmpty == false)
                    }
                    // One look at the disk brings all small variants of a key into memory.
                    let hit = DiskURLCache.Report.Outcome.hit(language == "en" ? .disk : .memory)
                    #expect(report.outcome == (round == 1 ? report.missOutcome : hit))
                }
            }
            harness.cache.flush()
            // Caches on one directory are one store while the session of the round before still holds its own.
            harness.cache.removeAllCachedResponses(from: .memory)
        }
        #expect(origin.requests.count == 6)
    }

    // MARK: Cache-Status and events

    @Test func cacheStatusIsAddedBehindThatOfOtherCaches() async throws {
        let origin = try OriginServer { _ in
            .ok("x", ["Cache-Control": "max-age=60", "Cache-Status": "Far; hit"])
        }
        let harness = try LoadingHarness(configure: { $0.cacheStatusName = "App" })
        #expect(
            try await harness.load(origin.url("/a"))["Cache-Status"]
                == "Far; hit, App; fwd=uri-miss; fwd-status=200; stored")
        harness.clock.advance(by: 5)
        #expect(try await harness.load(origin.url("/a"))["Cache-Status"] == "Far; hit, App; hit; ttl=55")
    }

    @Test func oneEventForEachTaskWithItsOutcome() async throws {
        let gate = Gate()
        let origin = try OriginServer { request in
            switch request.path {
            case "/no-store": return .ok("x", ["Cache-Control": "no-store"])
            case "/tag":
                return request.fields["If-None-Match"] == nil
                    ? .ok("x", ["Cache-Control": "max-age=1", "ETag": "\"e\""])
                    : .status(304, "", ["ETag": "\"e\""])
            case "/swr": return .ok("x", ["Cache-Control": "max-age=1, stale-while-revalidate=60"])
            case "/fail": return OriginResponse(ending: .noResponse)
            case "/slow":
                var response = OriginResponse.ok("x")
                response.beforeHead = { gate.wait() }
                return response
            case "/cut":
                return OriginResponse(
                    fields: ["Cache-Control": "max-age=60"], body: Data("onetwo".utf8), ending: .cutBody(after: 3))
            default: return .ok("x", ["Cache-Control": "max-age=60"])
            }
        }
        let delegate = RecordingDelegate()
        let harness = try LoadingHarness(delegate: delegate)

        func outcome(
            _ path: String, method: String = "GET", policy: URLRequest.CachePolicy = .useProtocolCachePolicy
        ) async throws -> DiskURLCache.Report.Outcome {
            let report = try await harness.report {
                _ = try? await harness.load(origin.url(path), method: method, policy: policy)
            }
            #expect(report.method == method && report.url == origin.url(path))
            return report.outcome
        }
        #expect(try await outcome("/a") == .miss(.notStored))
        #expect(try await outcome("/a") == .hit(.memory))
        #expect(try await outcome("/a", policy: .reloadIgnoringLocalCacheData) == .miss(.cachePolicy))
        harness.cache.flush()
        harness.cache.removeAllCachedResponses(from: .memory)
        #expect(try await outcome("/a") == .hit(.disk))
        #expect(try await outcome("/no-store") == .miss(.notStored))
        #expect(try await outcome("/tag") == .miss(.notStored))
        #expect(try await outcome("/swr") == .miss(.notStored))
        harness.clock.advance(by: 10)
        #expect(try await outcome("/tag") == .revalidated(.memory))
        #expect(try await outcome("/swr") == .staleHit(.memory, .staleWhileRevalidate))
        #expect(try await outcome("/fail") == .failed)
        #expect(try await outcome("/a", method: "POST") == .bypass(.methodNotCached))
        #expect(try await outcome("/b", policy: .returnCacheDataDontLoad) == .notAllowed(.notStored))

        let cut = try await harness.report {
            _ = await delegate.run(harness.session.dataTask(with: origin.url("/cut")))
        }
        #expect(cut.outcome == .failed && cut.isStored == nil && cut.error is URLError)
        let cancelled = try await harness.report {
            let task = harness.session.dataTask(with: origin.url("/slow"))
            task.resume()
            await gate.arrival()
            task.cancel()
            _ = await delegate.end(of: task)
        }
        #expect(cancelled.outcome == .failed && (cancelled.error as? URLError)?.code == .cancelled)
        gate.open()
    }

    // MARK: Life

    /// Each load holds the cache, so a cache that goes when its sessions are gone has no load left.
    @Test(.timeLimit(.minutes(30))) func nothingOfALoadStaysAlive() async throws {
        final class WatchedCache: DiskURLCache, @unchecked Sendable {
            var whenGone: (@Sendable () -> Void)?
            deinit { whenGone?() }
        }
        let origin = try OriginServer { request in
            request.path == "/redirect"
                ? .status(302, "", ["Location": "/a"])
                : .ok("x", ["Cache-Control": "max-age=1, stale-while-revalidate=9"])
        }
        let clock = ManualClock()
        let delegate = RecordingDelegate()
        let scratch = try ScratchDirectory("life")
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            Task {
                var settings = DiskURLCache.Configuration(
                    memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: scratch.appending("cache"))
                settings.clock = clock.wallClock
                let cache = WatchedCache(configuration: settings)
                cache.whenGone = { continuation.resume() }
                let session = LoadingHarness.session(of: cache, delegate: delegate)
                for round in 0..<20 {
                    for (path, method) in [("/a", "GET"), ("/\(round)", "GET"), ("/redirect", "GET"), ("/a", "POST")] {
                        let request = URLRequest(origin.url(path), method: method)
                        _ = try await session.data(for: request)
                        _ = await delegate.run(session.dataTask(with: request))
                        let task = session.dataTask(with: request)
                        task.resume()
                        task.cancel()
                        _ = await delegate.end(of: task)
                    }
                    clock.advance(by: 2)
                }
                session.finishTasksAndInvalidate()
                cache.flush()
            }
        }
        // It returns: a load that stayed alive would leave it waiting.
    }
}

extension DiskURLCache.Report {
    /// Itself where it is a miss, whatever the reason.
    fileprivate var missOutcome: Outcome? { if case .miss = outcome { outcome } else { nil } }
}

extension CachedURLResponse {
    fileprivate func copy(policy: URLCache.StoragePolicy) -> CachedURLResponse {
        CachedURLResponse(response: response, data: data, userInfo: userInfo, storagePolicy: policy)
    }
}
