#if DEBUG && os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// Caches of one directory in every order of their calls that a seed gives. What is found must be what was stored
    /// last, and nothing that was removed.
    ///
    /// A failing seed fails again in a process that has run some others before: what is made once in a process takes
    /// locks. Not beside other tests: a thread that does not go on may hold a lock that all caches of the process
    /// share.
    @Suite(.fewAtATime, .enabled(if: TestLength.hasSchedules, "on its own: .ci/run schedules"))
    struct ScheduleTests {
        private static let places = [("/a", "de"), ("/a", "en")].map { (path: $0.0, language: $0.1) }

        /// A cache, and by which number the record knows it.
        private struct Opened {
            let cache: DiskURLCache
            let number: Int
        }

        /// What each cache did at each place, and what does not agree with it.
        private struct Record {
            var histories = [KeyHistory](repeating: KeyHistory(), count: ScheduleTests.places.count)
            /// When each cache began to look for changes by others, the last time that it did.
            var looks: [Int: Int] = [:]
            var faults: [String] = []

            mutating func fault(_ what: String, at place: Int) {
                faults.append("\(what) at \(ScheduleTests.places[place])")
                faults += histories[place].operations.map { "\($0)" }
            }
        }

        @Test func whatIsFoundWasStoredAndNotRemoved() async throws {
            var schedules: Set<Int> = []
            let seeds = TestLength.scheduleSeeds
            for seed in seeds {
                let (faults, hash) = try await run(seed)
                #expect(faults.isEmpty, "seed \(seed)")
                if !faults.isEmpty { return }
                schedules.insert(hash)
            }
            #expect(schedules.count > seeds.count * 9 / 10)
        }

        /// Except where a thread of another test holds a lock that all caches share, or something is made once in a
        /// process.
        @Test func aSeedGivesOneOrder() async throws {
            var orders: Set<Int> = []
            for _ in 0..<20 where !orders.insert(try await run(7).hash).inserted { return }
            Issue.record("twenty runs had twenty orders")
        }

        private func run(_ seed: Int) async throws -> (faults: [String], hash: Int) {
            let directory = try SharedDirectory()
            // Half of them have two caches with two threads each.
            let (caches, threads) = seed / 4 % 2 == 0 ? (3, 3) : (2, 4)
            let schedule = Schedule(seed: seed, threads: threads)
            let record = Mutex(Record())
            let opened = (0..<caches).map { _ in Mutex<Opened?>(nil) }
            await schedule.run { thread in
                var random = TestRandom(seed * threads + thread)
                let place = opened[thread % caches]
                // Its other thread uses the cache that is there.
                let isFirst = thread < caches
                if isFirst {
                    let first = Opened(cache: directory.open(ScheduledFiles(), .resting), number: thread * 100)
                    place.withLock { $0 = first }
                }
                for step in 1...5 {
                    guard let cache = place.withLock({ $0 }) else { continue }
                    let value = thread * 100 + step
                    // Of two responses the later one is the newer one.
                    directory.clock.advance(by: 0.001)
                    self.perform(value, schedule, cache, &random, record)
                    guard isFirst, Int.random(in: 0..<5, using: &random) == 0 else { continue }
                    if Bool.random(using: &random) {
                        cache.cache.flush()
                    } else {
                        // Whoever uses it last closes it.
                        let next = Opened(cache: directory.open(ScheduledFiles(), .resting), number: value)
                        place.withLock { $0 = next }
                    }
                }
            }
            for place in opened { place.withLock { $0?.cache.close() } }
            let cache = directory.open()
            for place in Self.places.indices {
                guard let found = Self.find(place, cache) else { continue }
                record.withLock { record in
                    if !record.histories[place].allows(found) { record.fault("in the end \(found) is", at: place) }
                }
            }
            cache.close()
            return (record.withLock { $0.faults }, schedule.hash)
        }

        /// One operation of a cache.
        private func perform(
            _ value: Int, _ schedule: Schedule, _ opened: Opened, _ random: inout TestRandom,
            _ record: Mutex<Record>
        ) {
            let (cache, number) = (opened.cache, opened.number)
            func note(_ kind: KeyHistory.Kind, _ places: [Int], _ body: () -> Void) {
                let began = schedule.now()
                record.withLock { record in
                    for place in places {
                        record.histories[place].append(.init(kind: kind, began: began, cache: number))
                    }
                }
                body()
                let ended = schedule.now()
                record.withLock { record in
                    for place in places { record.histories[place].end(began, at: ended) }
                }
            }
            let place = Int.random(in: Self.places.indices, using: &random)
            let path = Self.places[place].path
            let everywhere = Array(Self.places.indices)
            let ofPath = everywhere.filter { Self.places[$0].path == path }
            switch Int.random(in: 0..<18, using: &random) {
            case 0..<6: note(.store(value), [place]) { Self.put(value, place, cache) }
            case 6, 7: note(.update, [place]) { cache.setPinned(true, for: Self.request(place)) }
            case 8...10: note(.removal, ofPath) { cache.remove(.key, path) }
            case 11: note(.removal, ofPath) { cache.remove(.resource, path) }
            case 12: note(.removal, everywhere) { cache.remove(.tag) }
            case 13: note(.removal, everywhere) { cache.remove(.all) }
            default:
                let began = schedule.now()
                let looks = Bool.random(using: &random)
                if looks { cache.look() }
                // A lookup that comes within a second of the last look does not look.
                let looked = looks ? began : record.withLock { $0.looks[number] ?? 0 }
                let found = Self.find(place, cache)
                let ended = schedule.now()
                record.withLock { record in
                    if looks { record.looks[number] = max(began, record.looks[number] ?? 0) }
                    guard let found else { return }
                    let history = record.histories[place].seen(by: number, at: looked)
                    if history.allows(found, in: began..<ended) { return }
                    record.fault(
                        "\(found) is found by \(number), which looked at \(looked), \(began) to \(ended),", at: place)
                }
            }
        }

        private static func request(_ place: Int) -> URLRequest {
            var request = Responses.request(
                places[place].path, fields: ["Accept-Language": places[place].language])
            request.cacheOptions = .init(tags: ["account"])
            return request
        }

        private static func put(_ value: Int, _ place: Int, _ cache: DiskURLCache) {
            let response = Responses.cached(
                Responses.url(places[place].path), "\(value)",
                fields: ["Cache-Control": "max-age=3600", "Vary": "Accept-Language"])
            cache.storeCachedResponse(response, for: request(place))
        }

        /// The value; 0 for something that nobody stored.
        private static func find(_ place: Int, _ cache: DiskURLCache) -> Int? {
            cache.cachedResponse(for: request(place)).map { Int(String(decoding: $0.data, as: UTF8.self)) ?? 0 }
        }
    }
#endif
