import Foundation
import Testing

@testable import DiskURLCache

/// After a damaged answer, all bodies of its key are read and compared with their checksums.
@Suite(.fewAtATime) struct VerifyingTests {
    private let fixture: DiskFixture
    private let key = RequestKey.test("a")

    init() throws { fixture = try DiskFixture() }

    /// A directory with an intact record of the key, and a damaged one, whose paths it returns.
    private func prepare(length: Int) throws -> (intact: String, damaged: String) {
        let store = fixture.open(capacity: 400 << 20)
        for (number, language) in ["de", "en"].enumerated() {
            store.store(
                .test(testBody(number, length: length), sequence: UInt64(number + 1), language: language), for: key)
        }
        store.close()
        let paths = (fixture.recordPath(key, slot: 0), fixture.recordPath(key, slot: 1))
        try damage(paths.1, at: length / 2)
        return paths
    }

    private func damage(_ path: String, at offset: Int) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        try file.seek(toOffset: UInt64(offset))
        try file.write(contentsOf: Data("damage".utf8))
        try file.close()
    }

    /// A store that is verifying the bodies of the key, and waits at the gate where it reads the file at the path.
    private func verifying(waitingFor path: String, _ gate: Gate) async -> DiskStore {
        let isVerifying = Flag()
        let files = FaultyFileSystem { call in
            if isVerifying.value, call.operation == .read, call.path == path { gate.wait() }
            return nil
        }
        let store = fixture.open(files: files)
        store.flush()
        isVerifying.set()
        store.requestExamination(of: key.name, verifyingBodies: true)
        await gate.arrival()
        return store
    }

    /// The bodies may be large, and the disk slow.
    @Test func nothingWaitsForIt() async throws {
        let paths = try prepare(length: 1 << 20)
        let gate = Gate()
        let store = await verifying(waitingFor: paths.intact, gate)
        let isDone = Flag()
        DispatchQueue.global().async {
            store.store(.test(testBody(3)), for: .test("b"))
            store.remove(.test("b"))
            isDone.set()
        }
        await eventually("the store and the removal") { isDone.value }
        gate.open()
        store.flush()
        #expect(store.variants(of: key).map(\.metadata.sequence) == [1])
        #expect(fixture.recordNames().count == 1 && store.usage == fixture.allocatedByRecords())
        #expect(fixture.log.count { if case .removedCorruptRecord = $0 { true } else { false } } == 1)
    }

    /// What a lookup finds meanwhile is not forgotten.
    @Test func whatIsAskedForMeanwhileIsDoneAfterwards() async throws {
        let paths = try prepare(length: 1 << 20)
        let gate = Gate()
        let store = await verifying(waitingFor: paths.damaged, gate)
        // It has been read already.
        try damage(paths.intact, at: 0)
        store.requestExamination(of: key.name, verifyingBodies: true)
        gate.open()
        await eventually("both are gone") { fixture.recordNames().isEmpty }
    }

    #if os(Linux)
        static func runInChild(_ directory: String) {
            let store = DiskStore(configuration: DiskConfiguration(directory: directory, capacity: 400 << 20))
            store.flush()
            let before = ProcessMemory.highWater
            store.requestExamination(of: RequestKey.test("a").name, verifyingBodies: true)
            store.flush()
            ChildProcess.say("\((ProcessMemory.highWater - before) >> 20) \(store.entryCount)")
        }

        @Test func largeBodiesAreReadInPieces() throws {
            _ = try prepare(length: 24 << 20)
            let child = try ChildProcess("verify", directory: fixture.directory)
            let numbers = try #require(child.remainingLines().last).split(separator: " ").compactMap { Int($0) }
            try #require(numbers.count == 2)
            #expect(numbers[0] < 16, "megabytes")
            #expect(numbers[1] == 1)
        }
    #endif
}
