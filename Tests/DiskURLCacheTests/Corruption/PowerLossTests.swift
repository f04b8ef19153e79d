import Foundation
import Testing

@testable import DiskURLCache

/// The power fails at any moment. Of the last changes of the directory any may be missing, and what was written then
/// may be torn, zeros or garbage: nothing is synced.
@Suite("Power loss", .fewAtATime) struct PowerLossTests {
    private static let keys = 12

    private let fixture: DiskFixture

    init() throws { fixture = try DiskFixture() }

    /// What a cache did with each key, by the number of changes that it had made.
    private struct Recording {
        var changes: [FaultyFileSystem.Change]
        var keys: [KeyHistory]
    }

    @Test("What was there is found, what was removed is not, and what was written last is whole or a miss")
    func anyOfTheLastChangesIsLost() throws {
        for seed in TestLength.crashSeeds {
            var random = TestRandom(seed)
            // In every third round entries are evicted.
            let capacity = seed % 3 == 0 ? 150 << 10 : 100 << 20
            let recording = try record(capacity, &random)
            #expect(recording.changes.count > 50)
            for _ in 0..<20 {
                let cut = Int.random(in: 1...recording.changes.count, using: &random)
                let certain = max(0, cut - Int.random(in: 0...12, using: &random))
                let replay = fixture.scratch.appending("replay").path
                for (number, change) in recording.changes[..<cut].enumerated() {
                    let isCertain = number < certain
                    let fate: Fate = isCertain ? .happened : .allCases.randomElement(using: &random) ?? .happened
                    let fates = Fates(fate: fate, random: Int.random(in: 0..<1 << 20, using: &random))
                    do {
                        try fates.apply(change, from: fixture.directory, to: replay)
                    } catch {
                        // What it changes was lost itself.
                        if isCertain { throw error }
                    }
                }
                guard FileManager.default.fileExists(atPath: replay) else { continue }
                verify(
                    replay, recording.keys.map { $0.cut(at: cut, certainUntil: certain) }, capacity,
                    "seed \(seed): \(cut) changes, \(certain) of them certain")
                try FileManager.default.removeItem(atPath: replay)
            }
            try FileManager.default.removeItem(atPath: fixture.directory)
        }
    }

    private func record(_ capacity: Int, _ random: inout TestRandom) throws -> Recording {
        let files = FaultyFileSystem()
        files.logChanges()
        func open() -> DiskStore {
            let store = fixture.open(capacity: capacity, files: files)
            store.maintenance.pause()
            return store
        }
        var store = open()
        var histories = [KeyHistory](repeating: KeyHistory(), count: Self.keys)
        func perform(_ kind: KeyHistory.Kind, _ keys: Range<Int>, _ body: () -> Void) {
            let began = files.changes.count
            body()
            for key in keys {
                histories[key].append(.init(kind: kind, began: began, ended: files.changes.count))
            }
        }
        for step in 1...60 {
            let number = Int.random(in: 0..<Self.keys, using: &random)
            let (key, place) = (RequestKey.test("\(number)"), number..<number + 1)
            switch Int.random(in: 0..<20, using: &random) {
            case 0..<11:
                let entry = StoredEntry.test(NumberedBody.make(step), sequence: UInt64(step) << 8)
                perform(.store(step), place) { store.store(entry, for: key) }
            case 11, 12: perform(.removal, place) { store.remove(key) }
            case 13: perform(.removal, 0..<Self.keys) { store.removeAll() }
            case 14...16:
                guard let old = store.variants(of: key).first?.metadata else { continue }
                var new = old
                new.sequence += 1
                new.tags = ["new"]
                perform(.update, place) {
                    _ = store.update(new, of: key, replacing: old, usedAt: MonotonicTime.nanoseconds)
                }
            case 17:
                store.close()
                store = open()
            default: store.flush()
            }
        }
        store.close()
        return Recording(changes: files.changes, keys: histories)
    }

    private func verify(_ directory: String, _ keys: [KeyHistory], _ capacity: Int, _ comment: Comment) {
        let store = DiskStore(configuration: .init(directory: directory, capacity: capacity))
        let evicts = capacity < 100 << 20
        for _ in 0..<2 {
            for (number, history) in keys.enumerated() {
                if let body = store.body(.test("\(number)")) {
                    let value = NumberedBody.number(of: body)
                    #expect(value.map { history.allows($0) } == true, "\(comment): \(number) has \(value as Any)")
                } else if !evicts, let value = history.required {
                    Issue.record("\(comment): \(number) lost \(value)")
                }
            }
            store.flush()
        }
        // Damaged records were found by the lookups and are gone.
        let names = (try? FileManager.default.contentsOfDirectory(atPath: directory + "/records")) ?? []
        let allocated = names.map { (try? SystemFiles().status(at: directory + "/records/" + $0))?.allocated ?? 0 }
        #expect(store.usage == allocated.reduce(0, +), comment)
        #expect(store.entryCount == names.count, comment)
        #expect(names.count <= Self.keys, comment)
        store.store(.test(testBody(7)), for: .test("after"))
        store.flush()
        #expect(store.body(.test("after")) == testBody(7), comment)
        let rest = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        #expect(!rest.contains { $0.hasPrefix("trash") || $0.hasSuffix(".new") }, comment)
        store.close()
    }
}

/// What became of a change, or of the bytes that it wrote.
private enum Fate: CaseIterable { case happened, lost, torn, zeroed, garbage }

private struct Fates {
    var fate: Fate
    var random: Int

    /// Makes a change again in the other directory, as far as it happened.
    func apply(_ change: FaultyFileSystem.Change, from: String, to: String) throws {
        func moved(_ path: String) -> String { path.replacingOccurrences(of: from, with: to) }
        let manager = FileManager.default
        if fate == .lost { return }
        switch change {
        case .create(let path): try Data().write(to: URL(fileURLWithPath: moved(path)))
        case .write(let path, let offset, let bytes):
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: moved(path)))
            try file.seek(toOffset: UInt64(offset))
            try file.write(contentsOf: written(bytes))
            try file.close()
        case .truncate(let path, let length):
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: moved(path)))
            try file.truncate(atOffset: UInt64(length))
            try file.close()
        case .unlink(let path): try manager.removeItem(atPath: moved(path))
        case .rename(let path, let newPath):
            let isThere = manager.fileExists(atPath: moved(path))
            if isThere, manager.fileExists(atPath: moved(newPath)) { try manager.removeItem(atPath: moved(newPath)) }
            try manager.moveItem(atPath: moved(path), toPath: moved(newPath))
        case .makeDirectory(let path):
            try manager.createDirectory(atPath: moved(path), withIntermediateDirectories: false)
        case .removeDirectory(let path): try manager.removeItem(atPath: moved(path))
        }
    }

    private func written(_ bytes: Data) -> Data {
        switch fate {
        case .happened, .lost: bytes
        case .torn: bytes.prefix(random % max(1, bytes.count))
        case .zeroed: Data(count: bytes.count)
        case .garbage: testBody(random, length: bytes.count)
        }
    }
}
