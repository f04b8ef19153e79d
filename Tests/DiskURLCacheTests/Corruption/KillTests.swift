#if os(Linux)
    import Foundation
    import Testing

    @testable import DiskURLCache

    /// What a child does until it is killed before its k-th file operation, and what must hold afterwards.
    enum KillScenario: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case store, replace, adopt, update, evict, removeAll, remove, saveIndex

        var testDescription: String { rawValue }

        static let count = TestLength.pick(plain: 10, long: 30)
        static let key = RequestKey.test("a")

        private var capacity: Int { self == .evict ? 120 << 10 : 100 << 20 }

        func open(_ directory: String, _ files: any FileSystem = SystemFiles()) -> DiskStore {
            DiskStore(configuration: .init(directory: directory, capacity: capacity), fileSystem: files)
        }

        func prepare(_ directory: String) {
            let store = open(directory)
            for number in 0..<(self == .evict ? 20 : Self.count) {
                store.store(.test(testBody(number)), for: .test("\(number)"))
            }
            if [.replace, .adopt, .update].contains(self) {
                store.store(.test(testBody(100), sequence: 1), for: Self.key)
            }
            store.close()
        }

        static func runInChild(_ directory: String) throws {
            let scenario = try #require(ChildProcess.argument("SCENARIO").flatMap(KillScenario.init))
            let step = try #require(ChildProcess.argument("STEP").flatMap(Int.init))
            let files = FaultyFileSystem()
            let store = scenario.open(directory, files)
            store.maintenance.pause()
            store.flush()
            if scenario == .saveIndex {
                for number in 0..<5 { store.store(.test(testBody(200 + number)), for: .test("new \(number)")) }
                store.flush()
                store.touch(key)
            }
            let count = Mutex(0)
            files.rule = { call in
                let number = count.next()
                // Half of a write is a step of its own: torn files are what a kill in its midst leaves.
                if number == step { kill(getpid(), SIGKILL) }
                return number == step - 1 && call.operation == .write ? .short(37) : nil
            }
            switch scenario {
            case .store, .replace: store.store(.test(testBody(101), sequence: 2), for: key)
            case .adopt:
                let body = try store.beginIncoming()
                for part in [testBody(101).prefix(300), testBody(101).dropFirst(300)] { try body.append(part) }
                let metadata = StoredEntry.test(Data(), sequence: 2).metadata
                _ = store.adopt(body, metadata, for: key, usedAt: MonotonicTime.nanoseconds)
                body.discard()
            case .update:
                var metadata = StoredEntry.test(Data(), sequence: 2).metadata
                metadata.tags = ["new"]
                _ = store.update(
                    metadata, of: key, replacing: StoredEntry.test(Data(), sequence: 1).metadata,
                    usedAt: MonotonicTime.nanoseconds)
            case .evict:
                for number in 100..<112 { store.store(.test(testBody(number)), for: .test("\(number)")) }
            case .removeAll: store.removeAll()
            case .remove: store.remove(.test("1"))
            case .saveIndex: break
            }
            ChildProcess.say("returned")
            store.flush()
            ChildProcess.say("flushed")
            store.close()
            ChildProcess.say("end")
        }

        func verify(_ directory: String, said: [String], _ comment: Comment) {
            if self == .evict { verifyUsage(directory, comment) }
            // The old index or the new one was there, and whole.
            #expect(FileManager.default.fileExists(atPath: directory + "/index.plist"), comment)
            let log = EventLog()
            let store = DiskStore(
                configuration: .init(directory: directory, capacity: capacity), report: log.report)
            for _ in 0..<2 {
                let body = store.body(Self.key)
                switch self {
                case .store:
                    #expect(body == nil || body == testBody(101), comment)
                    if said.contains("flushed") { #expect(body == testBody(101), comment) }
                case .replace, .adopt:
                    // The old value was whole, so it stays until the new one is.
                    #expect(body == testBody(100) || body == testBody(101), comment)
                    if said.contains("flushed") { #expect(body == testBody(101), comment) }
                case .update:
                    // A head that was written in part is a miss.
                    #expect(body == nil || body == testBody(100), comment)
                    if said.contains("returned") {
                        #expect(store.variants(of: Self.key).map(\.metadata.tags) == [["new"]], comment)
                    }
                case .removeAll:
                    for number in 0..<Self.count where said.contains("returned") {
                        #expect(!store.contains(.test("\(number)")), comment)
                    }
                case .remove:
                    if said.contains("returned") { #expect(!store.contains(.test("1")), comment) }
                case .evict, .saveIndex: break
                }
                for number in 0..<(self == .evict ? 112 : Self.count) {
                    let body = store.body(.test("\(number)"))
                    let mayBeGone = self == .evict || self == .removeAll || self == .remove && number == 1
                    #expect(body == testBody(number) || mayBeGone && body == nil, comment)
                }
                for number in 0..<5 where self == .saveIndex {
                    #expect(store.body(.test("new \(number)")) == testBody(200 + number), comment)
                }
                store.flush()
            }
            verifyNames(store, directory, comment)
            #expect(!log.events.contains(.rejectedIndex), comment)
            let rest = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
            #expect(
                Set(rest).isSubset(of: [
                    "records", "index.plist", "lock", "changes", "CACHEDIR.TAG",
                ]),
                comment)
            store.close()
        }
    }

    extension KillScenario {
        /// Before any lookup, which would find what is missing.
        private func verifyUsage(_ directory: String, _ comment: Comment) {
            let store = open(directory)
            store.flush()
            verifyNames(store, directory, comment)
            store.close()
        }

        /// The store knows what there is, and what it takes.
        private func verifyNames(_ store: DiskStore, _ directory: String, _ comment: Comment) {
            var allocated = 0
            let names = (try? FileManager.default.contentsOfDirectory(atPath: directory + "/records")) ?? []
            for name in names {
                allocated += (try? SystemFiles().status(at: directory + "/records/" + name))?.allocated ?? 0
            }
            #expect(store.usage == allocated, comment)
            #expect(store.entryCount == names.count, comment)
        }
    }

    /// A child process, killed before each file operation in turn.
    @Suite("Kills", .fewAtATime) struct KillTests {
        @Test("SIGKILL at every system call", arguments: KillScenario.allCases)
        func everyStep(scenario: KillScenario) throws {
            // The plain form takes some of the steps; an odd distance, since creating and writing alternate.
            let distance = TestLength.pick(plain: 29, long: 1)
            let scratch = try ScratchDirectory()
            let template = scratch.appending("template").path
            scenario.prepare(template)
            var step = 1 - distance
            while true {
                step += distance
                let directory = scratch.appending("\(step)").path
                try FileManager.default.copyItem(atPath: template, toPath: directory)
                let child = try ChildProcess(
                    "kill", directory: directory, ["SCENARIO": scenario.rawValue, "STEP": String(step)])
                let said = child.remainingLines()
                scenario.verify(directory, said: said, "\(scenario) step \(step) \(said)")
                try FileManager.default.removeItem(atPath: directory)
                if said.last == "end" { break }
                #expect(child.wasKilled)
                if !child.wasKilled || step > 300 { break }
            }
            #expect(step > 5)
        }
    }
#endif
