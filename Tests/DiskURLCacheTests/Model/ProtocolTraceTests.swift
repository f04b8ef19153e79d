#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// Caches do things at random, and the protocol must allow what each of them did with the files. So the code keeps
    /// the rules that the model (`Documentation/Model`) has.
    @Suite(.fewAtATime) struct ProtocolTraceTests {
        private static let paths = ["/a", "/b"]

        private static func key(_ path: String, in cache: DiskURLCache) throws -> KeyName {
            try #require(cache.core.key(for: Responses.request(path))).name
        }

        /// One operation of a cache.
        /// - Parameter keys: those of `paths`.
        private static func perform(
            _ count: Int, _ trace: ProtocolTrace, _ cache: DiskURLCache, by number: Int, _ keys: [KeyName],
            _ random: inout TestRandom
        ) {
            let place = Int.random(in: paths.indices, using: &random)
            let (path, key) = (paths[place], keys[place])
            switch Int.random(in: 0..<10, using: &random) {
            case 0...3: trace.perform(.store, of: key, by: number) { cache.put("\(number) \(count)", path) }
            case 4: trace.perform(.pin, of: key, by: number) { cache.pin(path) }
            case 5, 6: trace.perform(.remove, of: key, by: number) { cache.remove(.key, path) }
            case 7: trace.perform(.remove, of: nil, by: number) { cache.remove(count % 2 == 0 ? .tag : .all) }
            default: trace.perform(.lookup, of: key, by: number) { _ = cache.foundLater(path) }
            }
        }

        /// What three caches did, each on a thread of its own or one after the other, and the records that are left.
        private func run(
            _ seed: Int, atOnce: Bool = true
        ) async throws -> (events: [ProtocolTrace.Event], left: Set<RecordName>) {
            let directory = try SharedDirectory()
            let trace = ProtocolTrace()
            let caches = (0..<3).map { directory.open(TracedFiles(trace, cache: $0), atOnce ? .justOpened : .flushed) }
            // Passes come when they come, and take the place of an operation's own steps.
            if !atOnce { for cache in caches { cache.rest() } }
            let keys = try Self.paths.map { try Self.key($0, in: caches[0]) }
            @Sendable func perform(_ count: Int, by number: Int, _ random: inout TestRandom) {
                Self.perform(count, trace, caches[number], by: number, keys, &random)
            }
            let operations = 12
            if atOnce {
                await onThreads(caches.count) { number in
                    var random = TestRandom(seed * 3 + number)
                    for count in 0..<operations { perform(count, by: number, &random) }
                }
            } else {
                var random = TestRandom(seed)
                for count in 0..<operations * 3 { perform(count, by: count % 3, &random) }
            }
            for cache in caches {
                if !atOnce { cache.wake() }
                cache.close()
            }
            let left = try directory.records.compactMap { name in name.withCString { RecordName($0) } }
            return (trace.events, Set(left))
        }

        @Test func whatCachesDoIsTheProtocol() async throws {
            for seed in 0..<TestLength.pick(plain: 5, long: 200) {
                let (events, left) = try await run(seed)
                let fault = ProtocolChecker.fault(in: events, left: left)
                #expect(fault == nil, "seed \(seed)")
                if fault != nil { return }
            }
        }

        static func runInChild(_ directory: String) throws {
            func number(_ name: String) throws -> Int {
                try #require(ChildProcess.argument(name).flatMap(Int.init))
            }
            let (seed, cacheNumber) = (try number("SEED"), try number("NUMBER"))
            var random = TestRandom(seed * 1_000 + cacheNumber)
            let trace = ProtocolTrace(
                log: try #require(ChildProcess.argument("LOG")), lastStep: Int.random(in: 10...600, using: &random))
            var configuration = DiskURLCache.Configuration(
                memoryCapacity: 8 << 20, diskCapacity: 64 << 20, directory: URL(fileURLWithPath: directory))
            configuration.fileSystem = TracedFiles(trace, cache: cacheNumber)
            let cache = DiskURLCache(configuration: configuration)
            let keys = try paths.map { try key($0, in: cache) }
            for count in 0..<60 { perform(count, trace, cache, by: cacheNumber, keys, &random) }
            cache.close()
        }

        /// Two processes at a time on one directory, of which most kill themselves before one of their steps.
        @Test func whatProcessesDoThatAreKilledIsTheProtocol() throws {
            var killed = 0
            for seed in 0..<TestLength.pick(plain: 1, long: 50) {
                let directory = try SharedDirectory()
                let log = directory.scratch.appending("log").path
                for round in 0..<3 {
                    let children = try (0..<2).map { number in
                        try ChildProcess(
                            "trace", directory: directory.url.path,
                            ["SEED": "\(seed)", "NUMBER": "\(round * 2 + number)", "LOG": log])
                    }
                    for child in children {
                        _ = child.remainingLines()
                        if child.wasKilled { killed += 1 } else { #expect(child.succeeded, "seed \(seed)") }
                    }
                }
                let left = try directory.records.compactMap { name in name.withCString { RecordName($0) } }
                let events = try #require(try ProtocolTrace.events(of: log))
                #expect(events.count > 100)
                let fault = ProtocolChecker.fault(in: events, left: Set(left))
                #expect(fault == nil, "seed \(seed)")
                if fault != nil { return }
            }
            #expect(killed > 0)
        }

        /// Without one of its rows, or of the files that it made, wrote or removed, what an operation did is none of
        /// the protocol.
        @Test func aTraceWithoutOneOfItsEventsIsRefused() async throws {
            var count = 0
            for seed in 0..<5 {
                let (events, left) = try await run(seed, atOnce: false)
                for place in events.indices where isNeeded(place, in: events) {
                    var others = events
                    others.remove(at: place)
                    let fault = ProtocolChecker.fault(in: others, left: left)
                    #expect(fault != nil, "seed \(seed): \(events[place]), at \(place)")
                    count += 1
                }
            }
            #expect(count > 100)
        }

        /// Rules that no event of those traces shows when it is missing.
        @Test func whatBreaksARuleIsRefusedByItsName() {
            let key = KeyName(resource: 1, low: 2)
            let record = RecordName(key: key, slot: 0)
            let file = FileIdentity(device: 1, inode: 1)
            func place(_ row: Int) -> ProtocolTrace.RowPlace {
                ProtocolTrace.RowPlace(file: file, offset: row * DirectoryChange.rowLength)
            }
            func fault(_ steps: [(cache: Int, isOfOperation: Bool, step: ProtocolTrace.Step)]) -> String? {
                let events = steps.map {
                    ProtocolTrace.Event(cache: $0.cache, isOfOperation: $0.isOfOperation, step: $0.step)
                }
                return ProtocolChecker.fault(in: events, left: [record])
            }
            let lonely: [ProtocolTrace.Step] = [.begin(.store, key: key), .make(record), .publish(record), .end]
            #expect(fault([(0, false, .own)] + lonely.map { (0, true, $0) })?.contains("LOOK_AFTER_A_WRITE") == true)
            #expect(
                fault([
                    (1, true, .begin(.store, key: key)), (1, true, .row(.storing(key), place(0))),
                    (1, true, .make(record)),
                    (1, true, .lock(record)), (0, false, .unlink(record)),
                ])?.contains("RECORD_LOCK") == true)
            #expect(
                fault([
                    (1, true, .begin(.store, key: key)), (1, true, .row(.storing(key), place(0))),
                    (1, true, .make(record)),
                    (1, true, .lock(record)), (0, true, .row(.removed(key), place(1))), (1, true, .publish(record)),
                    (1, true, .row(.stored(key), place(2))), (1, true, .read([place(1)])), (1, true, .end),
                ])?.contains("WITHDRAWAL") == true)
        }

        /// Whether the operation that an event is of cannot do without it.
        private func isNeeded(_ place: Int, in events: [ProtocolTrace.Event]) -> Bool {
            let event = events[place]
            func isOwn(_ other: Int) -> Bool { events[other].cache == event.cache && events[other].isOfOperation }
            guard event.isOfOperation,
                let begin = events[..<place].indices.last(where: { isOwn($0) && events[$0].isBegin }),
                let end = events[place...].indices.first(where: { isOwn($0) && events[$0].isEnd }),
                case .begin(let operation, let key?) = events[begin].step
            else { return false }
            let steps = events[begin...end].indices.filter(isOwn).map { events[$0].step }
            let hasWritten = steps.contains { if case .publish = $0 { true } else { false } }
            let makes = steps.count { if case .make = $0 { true } else { false } }
            switch (operation, event.step) {
            case (.store, .make): return makes == 1 && hasWritten
            case (.store, .publish(let name)):
                // An operation may give back what it has not written.
                return makes == 1 && steps.contains { if case .row(.stored(key), _) = $0 { true } else { false } }
                    && !steps.contains { if case .unlink(name) = $0 { true } else { false } }
                    && !events[place..<end].contains { if case .clear = $0.step { true } else { false } }
            case (.remove, .unlink(let name)):
                return name.key == key
                    && events[begin..<place].allSatisfy { if case .make(name) = $0.step { false } else { true } }
            case (.store, .row(.storing(key), _)):
                let isOwner = events[..<end].contains {
                    if case .own = $0.step { $0.cache == event.cache } else { false }
                }
                return hasWritten && !isOwner
                    && steps.count { if case .row(.storing(key), _) = $0 { true } else { false } } == 1
            case (.store, .row(.stored(key), _)):
                return hasWritten && steps.count { if case .row(.stored(key), _) = $0 { true } else { false } } == 1
            case (.remove, .row(.removed(key), _)):
                let isAlone = steps.contains { if case .look(isThere: false) = $0 { true } else { false } }
                return !isAlone && steps.count { if case .row(.removed(key), _) = $0 { true } else { false } } == 2
            default: return false
            }
        }
    }

    extension ProtocolTrace.Event {
        fileprivate var isBegin: Bool { if case .begin = step { true } else { false } }
        fileprivate var isEnd: Bool { if case .end = step { true } else { false } }
    }
#endif
