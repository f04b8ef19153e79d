import Foundation
import Testing

@testable import DiskURLCache

/// The power fails after any change of the directory, with the data of the last files lost or not.
@Suite("Power loss", .fewAtATime) struct PowerLossTests {
    /// What a power failure does to the files changed last.
    enum Loss: CaseIterable, Sendable {
        case nothing, emptied, zeroed, garbage, nameLost
    }

    @Test("Every prefix of the changes: old value, new value or a miss", arguments: Loss.allCases)
    func everyPrefix(loss: Loss) throws {
        let fixture = try DiskFixture()
        let files = FaultyFileSystem()
        files.logChanges()
        let store = fixture.open(capacity: 150 << 10, files: files)
        store.maintenance.pause()
        for round in 0..<3 {
            for number in 0..<12 {
                store.store(.test(testBody(round * 100 + number), sequence: UInt64(round)), for: .test("\(number)"))
            }
            store.flush()
            store.remove(.test("\(round)"))
            if round == 1 { store.removeAll() }
            store.flush()
        }
        store.close()
        let changes = files.changes
        #expect(changes.count > 100)

        let replay = fixture.scratch.appending("replay").path
        var last: [String] = []
        for (step, change) in changes.enumerated() {
            let touched = try apply(change, from: fixture.directory, to: replay)
            last = (last + [touched]).suffix(4)
            // Every step is tried where nothing else is lost, and every third where something is; fewer in the plain
            // form.
            let distance = TestLength.pick(plain: 7, long: 1) * (loss == .nothing ? 1 : 3)
            guard step.isMultiple(of: distance) else { continue }
            guard FileManager.default.fileExists(atPath: replay) else { continue }
            let copy = fixture.scratch.appending("copy \(step)").path
            try FileManager.default.copyItem(atPath: replay, toPath: copy)
            for path in Set(last) { try lose(loss, path.replacingOccurrences(of: replay, with: copy)) }
            try verify(copy, "\(loss) after \(step): \(change)")
            try FileManager.default.removeItem(atPath: copy)
        }
    }

    private func verify(_ directory: String, _ comment: Comment) throws {
        let store = DiskStore(configuration: .init(directory: directory, capacity: 150 << 10))
        for _ in 0..<2 {
            for number in 0..<12 {
                guard let body = store.body(.test("\(number)")) else { continue }
                #expect((0..<3).contains { body == testBody($0 * 100 + number) }, comment)
            }
            store.flush()
        }
        // Damaged records were found by the lookups and are gone.
        var allocated = 0
        let names = try FileManager.default.contentsOfDirectory(atPath: directory + "/records")
        for name in names { allocated += try SystemFiles().status(at: directory + "/records/" + name).allocated }
        #expect(store.usage == allocated, comment)
        #expect(store.entryCount == names.count, comment)
        #expect(names.count <= 12, comment)
        store.store(.test(testBody(7)), for: .test("after"))
        store.flush()
        #expect(store.body(.test("after")) == testBody(7), comment)
        let rest = try FileManager.default.contentsOfDirectory(atPath: directory)
        #expect(!rest.contains { $0.hasPrefix("trash") || $0.hasSuffix(".new") }, comment)
        store.close()
    }

    private func lose(_ loss: Loss, _ path: String) throws {
        guard let status = try? SystemFiles().status(at: path), status.kind == .regular else { return }
        let url = URL(fileURLWithPath: path)
        switch loss {
        case .nothing: break
        case .emptied: try Data().write(to: url)
        case .zeroed: try Data(count: status.size).write(to: url)
        case .garbage: try testBody(status.size, length: status.size).write(to: url)
        case .nameLost: try FileManager.default.removeItem(at: url)
        }
    }

    /// Makes a change again in the other directory; gives the path that it changed there.
    private func apply(_ change: FaultyFileSystem.Change, from: String, to: String) throws -> String {
        func moved(_ path: String) -> String { path.replacingOccurrences(of: from, with: to) }
        let manager = FileManager.default
        switch change {
        case .create(let path):
            try Data().write(to: URL(fileURLWithPath: moved(path)))
            return moved(path)
        case .write(let path, let offset, let bytes):
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: moved(path)))
            try file.seek(toOffset: UInt64(offset))
            try file.write(contentsOf: bytes)
            try file.close()
            return moved(path)
        case .truncate(let path, let length):
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: moved(path)))
            try file.truncate(atOffset: UInt64(length))
            try file.close()
            return moved(path)
        case .unlink(let path): try manager.removeItem(atPath: moved(path))
        case .rename(let path, let newPath):
            if manager.fileExists(atPath: moved(newPath)) { try manager.removeItem(atPath: moved(newPath)) }
            try manager.moveItem(atPath: moved(path), toPath: moved(newPath))
            return moved(newPath)
        case .makeDirectory(let path):
            try manager.createDirectory(atPath: moved(path), withIntermediateDirectories: true)
        case .removeDirectory(let path): try manager.removeItem(atPath: moved(path))
        }
        return ""
    }
}
