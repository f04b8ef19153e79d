#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// `Configuration.sharesFetches`: one request for all processes that want the same.
    @Suite(.fewAtATime) struct FetchesOfProcessesTests {
        private let scratch: ScratchDirectory

        init() throws { scratch = try ScratchDirectory("fetches") }

        /// Loads what each line names, all at once, and says how many bodies were right.
        static func runInChild(_ directory: String) throws {
            var settings = DiskURLCache.Configuration(directory: URL(fileURLWithPath: directory))
            settings.sharesFetches = true
            let cache = DiskURLCache(configuration: settings)
            let origin = try #require(ChildProcess.argument("ORIGIN"))
            ChildProcess.say("ready")
            while let line = readLine() {
                let paths = line.split(separator: " ").map(String.init)
                let right = Mutex(0)
                let group = DispatchGroup()
                for path in paths {
                    group.enter()
                    Task {
                        let answer = try? await cache.data(from: URL(string: origin + path)!)
                        if answer?.data == Data(path.utf8) { right.withLock { $0 += 1 } }
                        group.leave()
                    }
                }
                group.wait()
                ChildProcess.say("\(right.withLock { $0 })")
            }
        }

        private func child(_ origin: OriginServer) throws -> ChildProcess {
            let child = try ChildProcess(
                "fetches", directory: scratch.url.path,
                ["ORIGIN": String(origin.url("/").absoluteString.dropLast())])
            #expect(child.nextLine() == "ready")
            return child
        }

        private static func stored(_ request: OriginRequest) -> OriginResponse {
            .ok(request.path, ["Cache-Control": "max-age=60"])
        }

        @Test func severalProcessesThatMissTheSameSendOneRequestEach() throws {
            let origin = try OriginServer { Self.stored($0) }
            let (processes, urls) = TestLength.isLong ? (8, 200) : (4, 40)
            let children = try (0..<processes).map { _ in try child(origin) }
            let paths = (0..<urls).map { "/\($0)" }
            // Each in an order of its own.
            for (number, child) in children.enumerated() {
                child.send((paths[(number * 10)...] + paths[..<(number * 10)]).joined(separator: " "))
            }
            for child in children { #expect(child.nextLine() == "\(urls)") }
            #expect(origin.requests.count == urls)
            for child in children { child.release() }
        }

        /// Then the loads of one process wait for each other all the same.
        @Test func withoutTheFileOfLocksALoadLeads() async throws {
            try FileManager.default.createDirectory(
                at: scratch.appending("fetches"), withIntermediateDirectories: true)
            var settings = DiskURLCache.Configuration(directory: scratch.url)
            settings.sharesFetches = true
            let cache = DiskURLCache(configuration: settings)
            cache.flush()
            let (gate, count) = (Gate(), Mutex(0))
            let network = MemoryTransport { _, exchange in
                _ = count.next()
                gate.wait()
                exchange.head(200, ["Cache-Control": "max-age=60"])
                exchange.piece("body")
                exchange.end()
            }
            async let first = LoadReader(Responses.request("/a"), from: cache, over: network).answer()
            await gate.arrival()
            let waiting = LoadReader(Responses.request("/a"), from: cache, over: network)
            async let second = waiting.answer()
            await eventually("a deadline of the wait") { waiting.driver?.state.withLock { $0.deadline != nil } == true }
            gate.open()
            #expect(try await [first.data, second.data] == [Data("body".utf8), Data("body".utf8)])
            #expect(count.withLock { $0 } == 1)
        }

        @Test func ifTheProcessThatFetchesDiesOneOfTheOthersFetches() async throws {
            let gate = Gate()
            let origin = try OriginServer { request in
                var answer = Self.stored(request)
                if request.number == 1 { answer.beforeHead = { gate.wait() } }
                return answer
            }
            let children = try (0..<3).map { _ in try child(origin) }
            children[0].send("/a")
            await gate.arrival()
            for child in children.dropFirst() { child.send("/a") }
            children[0].kill()
            for child in children.dropFirst() {
                #expect(child.nextLine() == "1")
                child.release()
            }
            #expect(origin.requests.count == 2)
            gate.open()
        }

        /// For half of its time, whatever the wall clock does: here it stands still.
        @Test func aLoadDoesNotWaitForAnotherProcessForEver() async throws {
            let gate = Gate()
            let origin = try OriginServer { request in
                var answer = Self.stored(request)
                answer.beforeHead = { gate.wait() }
                return answer
            }
            let child = try child(origin)
            child.send("/a")
            await gate.arrival()
            var settings = DiskURLCache.Configuration(directory: scratch.url)
            settings.sharesFetches = true
            settings.clock = ManualClock(Date()).wallClock
            let cache = DiskURLCache(configuration: settings)
            var request = URLRequest(url: origin.url("/a"))
            let network = MemoryTransport { _, exchange in
                exchange.head(200, ["Cache-Control": "no-store"])
                exchange.piece("own")
                exchange.end()
            }
            request.timeoutInterval = 1
            while true {
                let client = PieceClient()
                let driver = LoadDriver(cache: cache, request: request, transport: network, client: client)
                driver.start()
                let heard = await client.heard { $0.hasEnded }
                // A busy machine has not got the answer in that time.
                if (heard.error as? URLError)?.code == .timedOut, request.timeoutInterval < 20 {
                    request.timeoutInterval *= 4
                    continue
                }
                #expect(heard.text == "own")
                break
            }
            gate.open()
            #expect(child.nextLine() == "1")
            child.release()
        }

        /// It leads nobody, and asks for itself.
        @Test func aTaskThatIsSuspendedAtOnceSendsItsRequest() async throws {
            let origin = try OriginServer { Self.stored($0) }
            let child = try child(origin)
            child.send("/other")
            #expect(child.nextLine() == "1")
            var settings = DiskURLCache.Configuration(directory: scratch.url)
            settings.sharesFetches = true
            let cache = DiskURLCache(configuration: settings)
            let network = MemoryTransport { _, exchange in
                exchange.head(200, ["Cache-Control": "max-age=60"])
                exchange.piece("own")
                exchange.end()
            }
            let client = PieceClient(isPaused: true)
            LoadDriver(cache: cache, request: Responses.request("/a"), transport: network, client: client).start()
            #expect(await client.heard { $0.hasEnded }.text == "own")
            #expect(network.requests.count == 1)
            child.release()
        }

        /// Others may write into it, so nothing is made there.
        @Test func aDirectoryThatIsNotUsedGetsNoFile() async throws {
            let origin = try OriginServer { Self.stored($0) }
            let directory = scratch.url.appendingPathComponent("open")
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            #expect(chmod(directory.path, 0o777) == 0)
            var settings = DiskURLCache.Configuration(directory: directory)
            settings.sharesFetches = true
            let cache = DiskURLCache(configuration: settings)
            #expect(cache.openingError?.code == .writableByOthers)
            #expect(try await cache.data(from: origin.url("/a")).data == Data("/a".utf8))
            #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).isEmpty)
        }

        @Test func whatCannotBeSharedIsFetchedByEach() throws {
            let origin = try OriginServer { .ok($0.path, ["Cache-Control": "no-store"]) }
            let children = try (0..<3).map { _ in try child(origin) }
            for _ in 0..<2 {
                for child in children { child.send("/a /b") }
                for child in children { #expect(child.nextLine() == "2") }
            }
            #expect(origin.requests.count == 12)
            for child in children { child.release() }
        }
    }
#endif
