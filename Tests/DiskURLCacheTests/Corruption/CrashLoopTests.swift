#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// Mixed load in a child that is killed at a random moment, and what its log says was possible.
    ///
    /// The child logs the begin and the end of each operation by single appending writes, which a kill cannot take
    /// back. Children of one directory write the same log, so it has the order of what they do.
    enum CrashLoad {
        static let keys = 40

        /// A line of the log: what begins or ends, of which key (all if it has none), and the number by which both are
        /// known.
        private struct Line {
            enum Event: String { case store, update, remove, find, end }

            var event: Event
            var key: Int?
            var number: Int
            /// Of an end: the value that was found.
            var found: Int?

            var text: String { "\(event) \(key ?? -1) \(number) \(found ?? -1)\n" }

            init(_ event: Event, _ key: Int?, _ number: Int, found: Int? = nil) {
                (self.event, self.key, self.number, self.found) = (event, key, number, found)
            }

            init?(_ text: Substring) {
                let parts = text.split(separator: " ")
                guard parts.count == 4, let event = Event(rawValue: String(parts[0])) else { return nil }
                let numbers = parts.dropFirst().compactMap { Int($0) }
                guard numbers.count == 3 else { return nil }
                self.init(
                    event, numbers[0] < 0 ? nil : numbers[0], numbers[1], found: numbers[2] < 0 ? nil : numbers[2])
            }
        }

        static func runInChild(_ directory: String) throws {
            let seed = try #require(ChildProcess.argument("SEED").flatMap(Int.init))
            let capacity = try #require(ChildProcess.argument("CAPACITY").flatMap(Int.init))
            let logPath = try #require(ChildProcess.argument("LOG"))
            let log = open(logPath, O_WRONLY | O_APPEND | O_CREAT, 0o600)
            @Sendable func note(_ line: Line) {
                let bytes = Array(line.text.utf8)
                _ = bytes.withUnsafeBytes { write(log, $0.baseAddress, $0.count) }
            }
            var random = TestRandom(seed)
            let end = Int.random(in: 1...4000, using: &random)
            let files = FaultyFileSystem { call in
                if call.number == end { kill(getpid(), SIGKILL) }
                return nil
            }
            var configuration = DiskConfiguration(directory: directory, capacity: capacity)
            configuration.maintenanceDelay = 0
            let store = DiskStore(configuration: configuration, fileSystem: files)
            let sequence = EntrySequence()
            onThreads(3) { thread in
                var random = TestRandom(seed * 3 + thread)
                for step in 0..<5000 {
                    let place = Int.random(in: 0..<keys, using: &random)
                    let key = RequestKey.test("\(place)")
                    // Names the operation, and is the value that it stores.
                    let number = (seed * 5000 + step) * 3 + thread
                    var found: Int?
                    switch Int.random(in: 0..<100, using: &random) {
                    case 0..<55:
                        note(Line(.store, place, number))
                        store.store(.test(NumberedBody.make(number), sequence: sequence.next(at: Date())), for: key)
                    case 55..<65:
                        note(Line(.remove, place, number))
                        store.remove(key)
                    case 65..<75:
                        guard let old = store.variants(of: key).first?.metadata else { continue }
                        var new = old
                        new.sequence += 1
                        new.tags = ["new"]
                        note(Line(.update, place, number))
                        _ = store.update(new, of: key, replacing: old, usedAt: MonotonicTime.nanoseconds)
                    case 75..<96:
                        note(Line(.find, place, number))
                        // Something that no child stored is found, too.
                        found = store.body(key).map { NumberedBody.number(of: $0) ?? 0 }
                    case 96..<99:
                        store.flush()
                        continue
                    default:
                        note(Line(.remove, nil, number))
                        store.removeAll()
                    }
                    note(Line(.end, place, number, found: found))
                }
            }
        }

        /// What was found under a key, and when.
        struct Finding {
            var key: Int
            var value: Int
            var time: Range<Int>
        }

        /// Reads the log of some children: a history for each key, and what they found meanwhile.
        /// - Parameter before: what was found before they began.
        static func read(
            _ path: String, before: [Int?]
        ) throws -> (keys: [KeyHistory], findings: [Finding]) {
            let text = try String(contentsOfFile: path, encoding: .utf8)
            var histories = before.map { value in
                var history = KeyHistory()
                history.append(.init(kind: value.map { .store($0) } ?? .removal, began: -2, ended: -1))
                return history
            }
            var findings: [Finding] = []
            var open: [Int: (line: Line, time: Int)] = [:]
            for (time, text) in text.split(separator: "\n").enumerated() {
                guard let line = Line(text) else { continue }
                func places(_ line: Line) -> [Int] { line.key.map { [$0] } ?? Array(histories.indices) }
                func begin(_ kind: KeyHistory.Kind) {
                    open[line.number] = (line, time)
                    for key in places(line) { histories[key].append(.init(kind: kind, began: time)) }
                }
                switch line.event {
                case .store: begin(.store(line.number))
                case .update: begin(.update)
                case .remove: begin(.removal)
                case .find: open[line.number] = (line, time)
                case .end:
                    guard let (begun, began) = open.removeValue(forKey: line.number) else { continue }
                    if begun.event == .find {
                        guard let key = line.key, let value = line.found else { continue }
                        findings.append(Finding(key: key, value: value, time: began..<time))
                    } else {
                        for key in places(begun) { histories[key].end(began, at: time) }
                    }
                }
            }
            return (histories, findings)
        }
    }

    @Suite("Crash loop", .fewAtATime) struct CrashLoopTests {
        @Test(
            "Random SIGKILL under mixed load, of one process or of two: what was stored is found, what was removed is not"
        )
        func rounds() throws {
            let fixture = try DiskFixture()
            let logPath = fixture.scratch.appending("log").path
            var before = [Int?](repeating: nil, count: CrashLoad.keys)
            var killed = 0
            var found = 0
            for seed in TestLength.crashSeeds {
                try Data().write(to: URL(filePath: logPath))
                // In every third round the children evict.
                let capacity = seed % 3 == 0 ? 200 << 10 : 100 << 20
                let children = try (0...seed % 2).map { number in
                    try ChildProcess(
                        "load", directory: fixture.directory,
                        ["SEED": String(seed * 2 + number), "CAPACITY": String(capacity), "LOG": logPath])
                }
                for child in children {
                    _ = child.remainingLines()
                    if child.wasKilled { killed += 1 }
                    if !child.wasKilled && !child.succeeded { Issue.record("seed \(seed): the child crashed") }
                }
                let (keys, findings) = try CrashLoad.read(logPath, before: before)
                for finding in findings where !keys[finding.key].allows(finding.value, in: finding.time) {
                    Issue.record("seed \(seed): a child found \(finding)")
                }
                found += findings.count
                let store = fixture.open()
                for pass in 0..<2 {
                    for (number, history) in keys.enumerated() {
                        let body = store.body(.test("\(number)"))
                        if let body {
                            found += 1
                            let value = NumberedBody.number(of: body)
                            if value.map({ history.allows($0) }) != true {
                                Issue.record("seed \(seed) pass \(pass): \(number) has \(value as Any)")
                            }
                        } else if capacity >= 100 << 20, let value = history.required {
                            Issue.record("seed \(seed) pass \(pass): \(number) lost \(value)")
                        }
                        before[number] = body.flatMap(NumberedBody.number(of:))
                    }
                    store.flush()
                }
                #expect(store.usage == fixture.allocatedByRecords(), "seed \(seed)")
                #expect(store.entryCount == fixture.recordNames().count, "seed \(seed)")
                store.close()
                let rest = try FileManager.default.contentsOfDirectory(atPath: fixture.directory)
                #expect(
                    Set(rest).isSubset(of: [
                        "records", "index.plist", "lock", "changes", "CACHEDIR.TAG",
                    ]))
            }
            #expect(killed > TestLength.crashSeeds.count / 2)
            #expect(found > TestLength.crashSeeds.count)
        }
    }
#endif
