#if DEBUG && os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    #if canImport(FoundationNetworking)
        import FoundationNetworking
    #endif

    /// Caches of one directory in every order of their calls that a seed gives. What is found, or delivered by a load,
    /// must be what was stored last, and nothing that was removed.
    ///
    /// A failing seed fails again in a process that has run some others before: what is made once in a process takes
    /// locks. Not beside other tests: a thread that does not go on may hold a lock that all caches of the process
    /// share.
    @Suite(.serialized, .fewAtATime, .enabled(if: TestLength.hasSchedules, "on its own: .ci/run schedules"))
    struct ScheduleTests {
        /// A cache, and by which number the record knows it.
        private struct Opened {
            let cache: DiskURLCache
            let number: Int
        }

        private enum Step {
            case change, pin, load, answer, cancel

            static let withoutLoads = [Step.change]
            static let withLoads = times([(5, .change), (2, .pin), (6, .load), (6, .answer), (1, .cancel)])
            /// Most answers come for what is still stored.
            static let ofFewChanges = times([(1, .change), (5, .pin), (5, .load), (5, .answer)])

            private static func times(_ steps: [(Int, Step)]) -> [Step] {
                steps.flatMap { [Step](repeating: $1, count: $0) }
            }
        }

        @Test(arguments: [false, true]) func whatIsFoundWasStoredAndNotRemoved(hasLoads: Bool) async throws {
            var schedules: Set<Int> = []
            let seeds = TestLength.scheduleSeeds
            for seed in seeds {
                let (faults, hash) = try await run(seed, hasLoads)
                #expect(faults.isEmpty, "seed \(seed)")
                if !faults.isEmpty { return }
                schedules.insert(hash)
            }
            #expect(schedules.count > seeds.count * 9 / 10)
        }

        /// Except where a thread of another test holds a lock that all caches share, or something is made once in a
        /// process.
        @Test(arguments: [false, true]) func aSeedGivesOneOrder(hasLoads: Bool) async throws {
            var orders: Set<Int> = []
            for _ in 0..<20 where !orders.insert(try await run(7, hasLoads).hash).inserted { return }
            Issue.record("twenty runs had twenty orders")
        }

        private func run(_ seed: Int, _ hasLoads: Bool) async throws -> (faults: [String], hash: Int) {
            let directory = try SharedDirectory()
            // Three caches with a thread each, two with two, or one with more: loads meet within a process, too.
            let shapes = [(caches: 3, threads: 3), (2, 4), (1, 3), (1, 2)]
            let (caches, threads) = shapes[seed / 4 % (hasLoads ? 4 : 2)]
            let schedule = Schedule(seed: seed, threads: threads)
            let record = Mutex(ScheduleRecord(isAlone: caches == 1))
            let loads = ScheduledLoads(schedule, record)
            let opened = (0..<caches).map { _ in Mutex<Opened?>(nil) }
            let steps = !hasLoads ? Step.withoutLoads : threads == 2 ? Step.ofFewChanges : Step.withLoads
            await schedule.run { thread in
                var random = TestRandom(seed * threads + thread)
                let place = opened[thread % caches]
                // Its other thread uses the cache that is there.
                let isFirst = thread < caches
                if isFirst {
                    let first = Opened(cache: directory.open(ScheduledFiles(), .resting), number: thread * 1_000)
                    place.withLock { $0 = first }
                }
                for step in 1...(hasLoads ? 12 : 5) {
                    guard let cache = place.withLock({ $0 }) else { continue }
                    let value = thread * 1_000 + step
                    // Of two responses the later one is the newer one.
                    directory.clock.advance(by: 0.001)
                    switch step == 1 ? .change : steps.randomElement(using: &random) {
                    case .change: self.perform(value, schedule, cache, &random, record, hasLoads)
                    case .pin: cache.cache.setPinned(step % 2 == 0, for: ScheduleRecord.request(step / 2 % 2))
                    case .load: loads.start(from: cache.cache, cache.number, &random)
                    case .answer: loads.answer(with: value, &random)
                    case .cancel: loads.cancelOne(&random)
                    case nil: break
                    }
                    guard isFirst, Int.random(in: 0..<5, using: &random) == 0 else { continue }
                    if caches == 1 || Bool.random(using: &random) {
                        cache.cache.flush()
                    } else {
                        // Whoever uses it last closes it.
                        let next = Opened(cache: directory.open(ScheduledFiles(), .resting), number: value)
                        place.withLock { $0 = next }
                    }
                }
                // The rest of the answers, and of what loads do with them.
                var value = thread * 1_000 + 13
                var turns = 0
                while !loads.haveEnded {
                    if loads.answer(with: value, &random) { value += 1 }
                    ThreadTurn.ofThread?.wait()
                    turns += 1
                    guard turns > 1_000_000 else { continue }
                    DiskURLCache.forEachLoad { line in record.withLock { $0.faults.append("never ends: \(line)") } }
                    break
                }
            }
            for place in opened { place.withLock { $0?.cache.close() } }
            let cache = directory.open()
            for place in ScheduleRecord.places.indices {
                let response = cache.cachedResponse(for: ScheduleRecord.request(place))?.response as? HTTPURLResponse
                let confirmation = response?.value(forHTTPHeaderField: ScheduleRecord.confirmation).flatMap { Int($0) }
                let found = Self.find(place, cache)
                record.withLock { $0.judge(found, confirmation: confirmation, at: place) }
            }
            cache.close()
            return (record.withLock { $0.faults }, schedule.hash)
        }

        /// One operation of a cache.
        private func perform(
            _ value: Int, _ schedule: Schedule, _ opened: Opened, _ random: inout TestRandom,
            _ record: Mutex<ScheduleRecord>, _ hasLoads: Bool
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
            let place = Int.random(in: ScheduleRecord.places.indices, using: &random)
            let path = ScheduleRecord.places[place].path
            let everywhere = Array(ScheduleRecord.places.indices)
            let ofPath = ScheduleRecord.places(of: path)
            switch Int.random(in: 0..<18, using: &random) {
            case 0..<6:
                note(.store(value), [place]) { Self.put(value, place, cache, isStale: hasLoads && value % 2 == 0) }
            case 6, 7: note(.update, [place]) { cache.setPinned(true, for: ScheduleRecord.request(place)) }
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

        private static func put(_ value: Int, _ place: Int, _ cache: DiskURLCache, isStale: Bool) {
            let response = Responses.cached(
                Responses.url(ScheduleRecord.places[place].path), ScheduleRecord.body(value),
                fields: ScheduleRecord.fields(value, isStale ? .stale : .fresh))
            cache.storeCachedResponse(response, for: ScheduleRecord.request(place))
        }

        private static func find(_ place: Int, _ cache: DiskURLCache) -> Int? {
            cache.cachedResponse(for: ScheduleRecord.request(place)).map { ScheduleRecord.value(of: $0.data) }
        }
    }
#endif
