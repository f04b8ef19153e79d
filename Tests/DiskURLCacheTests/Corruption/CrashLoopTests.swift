#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// Mixed load in a child that is killed at a random moment, and what its log says was possible.
    ///
    /// The child logs the begin and the end of each operation by single appending writes, which a kill cannot take
    /// back.
    enum CrashLoad {
        static let keys = 40

        static func body(_ value: Int) -> Data {
            withUnsafeBytes(of: value) { Data($0) } + testBody(value, length: value % 30 == 0 ? 40_000 : value % 500)
        }

        static func value(_ body: Data) -> Int? {
            guard body.count >= 8 else { return nil }
            let value = body.withUnsafeBytes { $0.loadUnaligned(as: Int.self) }
            return body == Self.body(value) ? value : nil
        }

        static func runInChild(_ directory: String) throws {
            let seed = try #require(ChildProcess.argument("SEED").flatMap(Int.init))
            let logPath = try #require(ChildProcess.argument("LOG"))
            let log = open(logPath, O_WRONLY | O_APPEND | O_CREAT, 0o600)
            @Sendable func note(_ line: String) {
                let bytes = Array((line + "\n").utf8)
                _ = bytes.withUnsafeBytes { write(log, $0.baseAddress, $0.count) }
            }
            var random = TestRandom(seed)
            let end = Int.random(in: 1...4000, using: &random)
            let files = FaultyFileSystem { call in
                if call.number == end { kill(getpid(), SIGKILL) }
                return nil
            }
            var configuration = DiskConfiguration(
                directory: directory, capacity: seed % 3 == 0 ? 200 << 10 : 100 << 20)
            configuration.maintenanceDelay = 0
            let store = DiskStore(configuration: configuration, fileSystem: files)
            let sequence = EntrySequence()
            onThreads(3) { thread in
                var random = TestRandom(seed * 3 + thread)
                for step in 0..<5000 {
                    let key = Int.random(in: 0..<keys, using: &random)
                    let value = (seed * 5000 + step) * 3 + thread
                    switch Int.random(in: 0..<100, using: &random) {
                    case 0..<60:
                        note("B \(key) \(value)")
                        store.store(
                            .test(body(value), sequence: sequence.next(at: Date())), for: .test("\(key)"))
                        note("E \(key) \(value)")
                    case 60..<70:
                        note("B \(key) -\(value)")
                        store.remove(.test("\(key)"))
                        note("E \(key) -\(value)")
                    case 70..<96: _ = store.variants(of: .test("\(key)")).first?.load()
                    case 96..<99:
                        note("B flush \(value)")
                        store.flush()
                        note("E flush \(value)")
                    default:
                        note("B all -\(value)")
                        store.removeAll()
                        note("E all -\(value)")
                    }
                }
            }
        }

        /// What happened to one key, in the order of the log.
        struct History {
            struct Operation {
                /// Nil for a removal.
                var value: Int?
                var began: Int
                var ended = Int.max
            }

            var operations: [Operation]

            /// A value may be found unless a removal, or a store that a later flush made lasting, came after it.
            func allows(_ value: Int, flushes: [Operation]) -> Bool {
                guard let store = operations.first(where: { $0.value == value }) else { return false }
                return !operations.contains { other in
                    guard other.began > store.ended, other.ended != .max else { return false }
                    return other.value == nil || flushes.contains { $0.began > other.ended && $0.ended != .max }
                }
            }

            /// The value that must be found: stored last, flushed, and nothing begun since.
            func required(flushes: [Operation]) -> Int? {
                guard let last = operations.last, let value = last.value,
                    !operations.dropLast().contains(where: { $0.ended > last.began }),
                    flushes.contains(where: { $0.began > last.ended && $0.ended != .max })
                else { return nil }
                return value
            }
        }

        /// Reads the log of one child: a history for each key, and the flushes. `before` is what was found, and
        /// flushed, before the child began: a flush says nothing about what an earlier process stored and did not live
        /// to write.
        static func read(
            _ path: String, before: [Int?]
        ) throws -> (keys: [History], flushes: [History.Operation]) {
            let text = try String(contentsOfFile: path, encoding: .utf8)
            var keys = before.map { History(operations: [.init(value: $0, began: -4, ended: -3)]) }
            var flushes = [History.Operation(value: nil, began: -2, ended: -1)]
            var open: [String: Int] = [:]
            for (time, line) in text.split(separator: "\n").enumerated() {
                let parts = line.split(separator: " ").map(String.init)
                guard parts.count == 3, let number = Int(parts[2]) else { continue }
                let value = number < 0 || parts[2].hasPrefix("-") ? nil : number
                let name = parts[1] + parts[2]
                let places: [Int] = Int(parts[1]).map { [$0] } ?? (parts[1] == "all" ? Array(keys.indices) : [])
                if parts[0] == "B" {
                    open[name] = time
                    if parts[1] == "flush" { flushes.append(.init(value: number, began: time)) }
                    for key in places { keys[key].operations.append(.init(value: value, began: time)) }
                } else if let began = open[name] {
                    // From the end: what ends began a moment ago.
                    if let place = flushes.lastIndex(where: { $0.began == began }) { flushes[place].ended = time }
                    for key in places {
                        if let place = keys[key].operations.lastIndex(where: { $0.began == began }) {
                            keys[key].operations[place].ended = time
                        }
                    }
                }
            }
            return (keys, flushes)
        }
    }

    @Suite("Crash loop", .fewAtATime) struct CrashLoopTests {
        private static let rounds = TestLength.crashRounds

        @Test("Random SIGKILL under mixed load: 0 wrong bytes, 0 crashes at reopen, leftovers swept")
        func rounds() throws {
            let fixture = try DiskFixture()
            let logPath = fixture.scratch.appending("log").path
            var before = [Int?](repeating: nil, count: CrashLoad.keys)
            var killed = 0
            var found = 0
            for round in 1...Self.rounds {
                try Data().write(to: URL(filePath: logPath))
                let child = try ChildProcess(
                    "load", directory: fixture.directory, ["SEED": String(round), "LOG": logPath])
                _ = child.remainingLines()
                if child.wasKilled { killed += 1 }
                let (keys, flushes) = try CrashLoad.read(logPath, before: before)
                let store = fixture.open()
                for pass in 0..<2 {
                    for (number, history) in keys.enumerated() {
                        let body = store.body(.test("\(number)"))
                        if let body {
                            found += 1
                            let value = CrashLoad.value(body)
                            if value.map({ history.allows($0, flushes: flushes) }) != true {
                                Issue.record("round \(round) pass \(pass): \(number) has \(value as Any)")
                            }
                        } else if round % 3 != 0, let value = history.required(flushes: flushes) {
                            // In every third round the child evicts, and may have evicted this.
                            Issue.record("round \(round) pass \(pass): \(number) lost \(value)")
                        }
                        before[number] = body.flatMap(CrashLoad.value)
                    }
                    store.flush()
                }
                #expect(store.usage == fixture.allocatedByRecords(), "round \(round)")
                #expect(store.entryCount == fixture.recordNames().count, "round \(round)")
                store.close()
                let rest = try FileManager.default.contentsOfDirectory(atPath: fixture.directory)
                #expect(
                    Set(rest).isSubset(of: [
                        "records", "index.plist", "lock", "changes", "CACHEDIR.TAG",
                    ]))
                if !child.wasKilled && !child.succeeded { Issue.record("round \(round): the child crashed") }
            }
            #expect(killed > Self.rounds / 2)
            #expect(found > Self.rounds)
        }
    }
#endif
