import Foundation
import Testing

@testable import DiskURLCache

/// What another cache on the directory, or somebody else, does to it.
@Suite struct OtherCachesTests {
    private let key = RequestKey.test("a")

    private func tiered(_ fixture: DiskFixture) -> (store: TieredStore, disk: DiskStore) {
        let maintenance = MaintenanceQueue()
        let disk = DiskStore(
            configuration: .init(directory: fixture.directory, capacity: 100 << 20), maintenance: maintenance)
        let store = TieredStore.over(disk, maintenance)
        return (store, disk)
    }

    private func put(_ number: Int, _ key: RequestKey, in store: TieredStore) {
        store.store(StoredEntry.test(testBody(number)).metadata, .memory(testBody(number)), for: key)
    }

    private func body(_ key: RequestKey, in store: TieredStore) -> Data? {
        store.lookup(key).variants().first?.load()?.body
    }

    // MARK: Removals

    @Test(arguments: ["key", "resource", "criteria", "all"], [true, false])
    func aRemovalReachesTheOthersMemoryWithinASecond(what: String, isByOwner: Bool) throws {
        let fixture = try DiskFixture()
        let (first, firstDisk) = tiered(fixture)
        first.flush()
        let (second, secondDisk) = tiered(fixture)
        second.flush()
        #expect(firstDisk.isOwner && !secondDisk.isOwner)
        put(1, key, in: first)
        first.flush()
        #expect(body(key, in: first) == testBody(1) && body(key, in: second) == testBody(1))
        let remover = isByOwner ? first : second
        switch what {
        case "key": remover.remove(key)
        case "resource": remover.remove(uri: key.uri)
        case "criteria": remover.remove(matching: EntryCriteria(storedAfter: .distantPast))
        default: remover.removeAll()
        }
        for disk in [firstDisk, secondDisk] { disk.nextCheck.set(0) }
        #expect(body(key, in: first) == nil && body(key, in: second) == nil)
        #expect(fixture.recordNames().isEmpty)
        // What is stored afterwards stays.
        put(2, key, in: first)
        put(3, .test("b"), in: second)
        first.flush()
        second.flush()
        for disk in [firstDisk, secondDisk] { disk.nextCheck.set(0) }
        #expect(body(key, in: second) == testBody(2) && body(.test("b"), in: first) == testBody(3))
    }

    // MARK: The file of changes

    @Test func aFileThatIsNotUnderstoodIsARemovalOfEverything() throws {
        let fixture = try DiskFixture()
        let files = SystemFiles()
        let paths = DiskPaths(directory: fixture.directory)
        try FileManager.default.createDirectory(atPath: fixture.directory, withIntermediateDirectories: true)
        let (writer, reader) = (ChangeFile(files, paths, capacity: 0), ChangeFile(files, paths, capacity: 0))
        func read() -> [DirectoryChange] {
            var all: [DirectoryChange] = []
            reader.read(mayMake: true) { all += $0 }
            return all
        }
        #expect(read() == [])
        writer.append(.removed(key.name))
        #expect(read() == [.removed(key.name)] && read() == [])
        writer.append(.stored(key.name))
        writer.append(.removedResource(7))
        #expect(read() == [.stored(key.name), .removedResource(7)])
        reader.append(.removedAll)
        #expect(read() == [], "its own row")
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: paths.changes))
        // No row lies across two pages.
        let length = DirectoryChange.rowLength
        #expect(try 4096 % length == 0 && files.status(at: paths.changes).size == 4 * length)
        // A row whose bytes are other ones.
        writer.append(.stored(key.name))
        try file.seek(toOffset: file.seekToEnd() - 30)
        try file.write(contentsOf: Data([0x55, 0x55]))
        #expect(read() == [.removedAll])
        // A torn row.
        try file.seekToEnd()
        try file.write(contentsOf: Data(count: 7))
        #expect(read() == [.removedAll])
        // Shorter.
        try file.truncate(atOffset: 20)
        #expect(read() == [.removedAll])
        unlink(paths.changes)
        #expect(read() == [.removedAll] && read() == [])
        // Begun where there was none: nothing was missed.
        writer.append(.removed(key.name))
        #expect(read() == [.removed(key.name)])
        // Full, and replaced: anything may be missed, also by a reader that knew of no file.
        unlink(paths.changes)
        let late = ChangeFile(files, paths, capacity: 0)
        late.read(mayMake: false) { _ in Issue.record("nothing is there") }
        for _ in 0..<200 { writer.append(.stored(key.name)) }
        #expect(read() == [.removedAll] && read() == [])
        var heard: [DirectoryChange] = []
        late.read(mayMake: false) { heard += $0 }
        #expect(heard.first == .removedAll && heard.dropFirst().allSatisfy { $0 == .stored(key.name) })
        #expect(try files.status(at: paths.changes).size <= 4096)
    }

    /// Many caches begin the file at once, each with two threads, and fill it again and again: each one hears of each
    /// change of the others, and of nothing else, or that it may have missed one.
    @Test func cachesThatBeginAndFillAFileAtOnceMissNothing() throws {
        for capacity in [0, 1 << 30] {
            let fixture = try DiskFixture("\(capacity)")
            try FileManager.default.createDirectory(atPath: fixture.directory, withIntermediateDirectories: true)
            let paths = DiskPaths(directory: fixture.directory)
            let files = (0..<4).map { _ in ChangeFile(SystemFiles(), paths, capacity: capacity) }
            let heard = files.map { _ in Mutex<[DirectoryChange]>([]) }
            @Sendable func look(_ cache: Int, mayMake: Bool = true) {
                files[cache].read(mayMake: mayMake) { changes in heard[cache].withLock { $0 += changes } }
            }
            @Sendable func change(_ cache: Int, _ number: Int) -> DirectoryChange {
                .removed(KeyName(resource: UInt64(cache), low: UInt64(number)))
            }
            let count = 200
            for cache in 0..<4 { look(cache, mayMake: false) }
            DispatchQueue.concurrentPerform(iterations: 8) { thread in
                let cache = thread % 4
                for number in 0..<count {
                    look(cache)
                    if thread < 4 { files[cache].append(change(cache, number)) }
                }
            }
            for cache in 0..<4 {
                look(cache)
                let all = heard[cache].withLock { $0 }
                // A reader of a file that was full is told that it may have missed something.
                if capacity == 0, all.contains(.removedAll) { continue }
                let others = (0..<4).filter { $0 != cache }
                let expected = Set(others.flatMap { other in (0..<count).map { change(other, $0) } })
                let (missed, spurious) = (expected.subtracting(all).count, Set(all).subtracting(expected).count)
                #expect(missed == 0 && spurious == 0, "of \(expected.count), capacity \(capacity)")
            }
        }
    }

    // MARK: The directory
}
