#if canImport(FoundationNetworking)
    import Foundation
    import FoundationNetworking
    import Testing

    @testable import DiskURLCache

    /// A session of `makeSession` notes its tasks, so that no load reads its task: see `NotedTasks`.
    @Suite(.fewAtATime, .enabled(if: LoadingHarness.storesForSessions)) struct NotedTasksTests {
        @Test func aSessionNotesWhoGetsTheBodyOfEachDataTask() throws {
            let harness = try LoadingHarness(delegate: RecordingDelegate())
            let request = Responses.request("/a")
            let url = try #require(request.url)
            func hasHandler(_ task: URLSessionTask) -> Bool? {
                let link = SessionLink(task)
                #expect(link?.session === harness.session)
                #expect(link?.workQueue != nil)
                return link?.hasHandler
            }
            #expect(hasHandler(harness.session.dataTask(with: url)) == false)
            #expect(hasHandler(harness.session.dataTask(with: request)) == false)
            #expect(hasHandler(harness.session.dataTask(with: url) { _, _, _ in }) == true)
            #expect(hasHandler(harness.session.dataTask(with: request) { _, _, _ in }) == true)
            #expect(hasHandler(harness.session.uploadTask(with: request, from: Data())) == nil, "that task is read")
        }

        /// Foundation's own choice, which the notes must not differ from.
        @Test(arguments: [true, false]) func aNoteSaysTheSameAsTheTask(hasDelegate: Bool) throws {
            let harness = try LoadingHarness(delegate: hasDelegate ? RecordingDelegate() : nil)
            let url = Responses.url("/a")
            let tasks = [harness.session.dataTask(with: url), harness.session.dataTask(with: url) { _, _, _ in }]
            for task in tasks {
                let link = try #require(SessionLink(task))
                let queue = try #require(link.workQueue)
                let (noted, read) = queue.sync {
                    (link.audience, TaskSession.audience(of: task, in: link.session, isAsync: nil))
                }
                #expect("\(try #require(noted))" == "\(try #require(read))")
                #expect(TaskSession.origin(of: task)?.session === link.session)
            }
        }

        @Test func theNoteOfATaskGoesWithItsEnd() async throws {
            let origin = try OriginServer.counting()
            let delegate = RecordingDelegate()
            let harness = try LoadingHarness(delegate: delegate)
            for _ in 1...2 {
                let task = harness.session.dataTask(with: origin.url("/a"))
                #expect(NotedTasks.shared.note(of: task) != nil)
                _ = await delegate.run(task)
                await eventually("the note to be gone") { NotedTasks.shared.note(of: task) == nil }
            }
            let cancelled = harness.session.dataTask(with: origin.url("/b"))
            cancelled.cancel()
            _ = await delegate.end(of: cancelled)
            await eventually("the note of a cancelled task to be gone") {
                NotedTasks.shared.note(of: cancelled) == nil
            }
        }

        /// As of a task with another scheme, which no protocol of the loader serves.
        @Test func notesOfReleasedTasksDoNotGather() throws {
            let notes = NotedTasks()
            let outer = OuterSession(URLSession(configuration: .ephemeral))
            func note(_ tasks: [URLSessionTask]) {
                for task in tasks { notes.note(task, of: outer, hasHandler: false, cookie: nil) }
            }
            var tasks = (0..<500).map { _ in URLSessionDataTask() }
            // Made before the others are released, whose addresses they would have.
            let later = (0..<100).map { _ in URLSessionDataTask() }
            note(tasks)
            #expect(notes.count == 500)
            tasks.removeLast(490)
            note(later)
            #expect(notes.count <= tasks.count + later.count)
            for task in tasks + later { #expect(notes.note(of: task) != nil) }
        }

        /// The new session is not the one that the first one's tasks are noted for: it has its own delegate.
        @Test func aSessionMadeOfTheConfigurationOfAnotherHasItsOwnDelegate() async throws {
            let origin = try OriginServer { request in
                request.path == "/a"
                    ? .status(302, "", ["Location": "/b"]) : .ok("body", ["Cache-Control": "max-age=60"])
            }
            let harness = try LoadingHarness()
            let delegate = RecordingDelegate()
            let other = URLSession(
                configuration: harness.session.configuration, delegate: delegate, delegateQueue: nil)
            defer { other.invalidateAndCancel() }
            for _ in 1...2 {
                let record = await delegate.run(other.dataTask(with: origin.url("/a")))
                #expect(record.error == nil)
                #expect(record.redirects.count == 1)
                #expect(String(decoding: record.data, as: UTF8.self) == "body")
            }
            #expect(origin.requests.map(\.path) == ["/a", "/b", "/a"], "the cache served the second load")
        }

        /// The next session, with which what is left of this one goes, may be made much later.
        @Test(arguments: [false, true]) func whatIsKeptOfASessionHasNoCache(hasTransport: Bool) throws {
            let cache = DiskURLCache(configuration: .init(memoryCapacity: 1 << 20, diskCapacity: 0))
            let session =
                hasTransport
                ? try cache.makeSession(
                    configuration: .ephemeral, delegate: nil, delegateQueue: nil, through: MemoryTransport { _, _ in })
                : cache.makeSession(configuration: .ephemeral)
            let outer = NetworkSessions.shared.outer(of: session)
            #expect(outer.knownConfiguration?.urlCache == nil)
            #expect(outer.transport?.configuration.urlCache == nil)
            #expect(session.configuration.urlCache === cache)
            session.invalidateAndCancel()
        }

        /// Also what the session left behind: its inner session, and what was found out about it.
        @Test func aReleasedSessionLeavesNothing() async throws {
            let origin = try OriginServer.counting()
            weak var session: URLSession?
            weak var outer: OuterSession?
            weak var cache: DiskURLCache?
            do {
                let harness = try LoadingHarness()
                let (data, _) = try await harness.session.data(from: origin.url("/a"))
                #expect(!data.isEmpty)
                session = harness.session
                outer = NetworkSessions.shared.outer(of: harness.session)
                cache = harness.cache
            }
            await eventually("the release of session and cache") { session == nil && cache == nil }
            NetworkSessions.shared.releaseAbandoned()
            await eventually("the release of what was known of the session") { outer == nil }
        }
    }
#endif
