import Foundation
import Testing

@testable import DiskURLCache

/// The security rules of `Reliability.md`, as far as they are the disk layer's.
@Suite("Disk security", .fewAtATime) struct DiskSecurityTests {
    private let key = RequestKey.test("a")
    private let fixture: DiskFixture

    init() throws { fixture = try DiskFixture() }

    /// Every byte of every file of a directory, one after the other.
    private func allBytes(_ directory: String) -> Data {
        var all = Data()
        for name in FileManager.default.enumerator(atPath: directory)?.compactMap({ $0 as? String }) ?? [] {
            all += Data(name.utf8)
            all += (try? Data(contentsOf: URL(fileURLWithPath: directory + "/" + name))) ?? Data()
        }
        return all
    }

    @Test("Directory 0700 and files 0600, whatever the umask", arguments: ["000", "022", "777"])
    func modes(mask: String) throws {
        // The umask belongs to the whole process, so what it takes away is taken away here by the seam.
        let mask = try #require(mode_t(mask, radix: 8))
        let files = FaultyFileSystem()
        files.onCreated = { fchmod($0, 0o600 & ~mask) }
        let store = fixture.open(files: files)
        let guest = fixture.open(files: files)
        store.store(.test(testBody(1)), for: key)
        store.flush()
        guest.store(.test(testBody(1)), for: .test("b"))
        guest.flush()
        let directory = try SystemFiles().status(at: fixture.directory)
        #expect(directory.permissions == 0o700)
        #expect(try SystemFiles().status(at: fixture.records).permissions == 0o700)
        for name in fixture.scratch.files() {
            let status = try SystemFiles().status(at: fixture.scratch.appending(name).path)
            #expect(status.permissions == 0o600, "\(name)")
        }
        #expect(
            Set(fixture.scratch.files().map { $0.contains("records/") ? "record" : $0 }) == [
                "record", "cache/lock", "cache/index.plist", "cache/changes", "cache/CACHEDIR.TAG",
            ])
    }

    @Test("Names and index hold digests only") func digestsOnly() throws {
        let store = fixture.open { $0.keepsURLs = false }
        store.store(.test(Data(), url: "https://secret.example/secret?secret=1"), for: .test("https://secret.example"))
        store.flush()
        store.close()
        #expect(allBytes(fixture.directory).range(of: Data("secret".utf8)) == nil)
        // And with URLs kept, only the record has them.
        let other = fixture.open()
        other.store(.test(Data(), url: "https://secret.example/"), for: .test("https://secret.example"))
        other.close()
        try FileManager.default.removeItem(atPath: fixture.records)
        #expect(allBytes(fixture.directory).range(of: Data("secret".utf8)) == nil)
    }

    @Test("Values of the fields that Vary names are kept as digests only") func varyDigests() throws {
        let store = fixture.open()
        store.store(.test(testBody(1), language: "marker-8843"), for: key)
        store.close()
        #expect(allBytes(fixture.directory).range(of: Data("marker-8843".utf8)) == nil)
    }

    @Test("After removeAll and a flush a search for a marker finds nothing") func nothingIsLeft() throws {
        let store = fixture.open()
        let marker = Data("marker-5521".utf8)
        for number in 0..<50 { store.store(.test(marker + testBody(number)), for: .test("\(number)")) }
        store.flush()
        #expect(allBytes(fixture.directory).range(of: marker) != nil)
        store.removeAll()
        store.flush()
        #expect(allBytes(fixture.directory).range(of: marker) == nil)
        // The same for one entry that was replaced, refused or removed.
        store.store(.test(marker), for: key)
        store.flush()
        store.store(.test(testBody(1), sequence: 2), for: key)
        store.flush()
        #expect(allBytes(fixture.directory).range(of: marker) == nil)
        store.store(.test(marker, sequence: 3), for: key)
        store.flush()
        store.remove(key)
        #expect(allBytes(fixture.directory).range(of: marker) == nil)
    }

    @Test("A clearing is final at once, before any sweeping") func clearingIsFinal() throws {
        let store = fixture.open()
        for number in 0..<20 { store.store(.test(testBody(number)), for: .test("\(number)")) }
        store.flush()
        store.maintenance.pause()
        store.removeAll()
        // What another process finds now is what it would find after a kill.
        let other = fixture.open()
        for number in 0..<20 { #expect(other.variants(of: .test("\(number)")).isEmpty) }
        other.flush()
        #expect(other.entryCount == 0)
        #expect(fixture.recordNames().isEmpty)
    }

    @Test("A clearing that failed is done as soon as the disk allows it, without a further call")
    func aClearingThatFailedIsDoneLater() async throws {
        let isBroken = Mutex(false)
        let tries = Mutex(0)
        let files = FaultyFileSystem { call in
            if isBroken.withLock({ $0 }), call.operation == .rename { tries.withLock { $0 += 1 } }
            let isRemoval = call.operation == .rename || call.operation == .unlink
            return isRemoval && isBroken.withLock { $0 } ? .error(EIO) : nil
        }
        let scratch = try ScratchDirectory("clearing")
        let cache = DiskURLCache(in: scratch, clock: ManualClock()) { $0.fileSystem = files }
        let request = Responses.request("/a")
        func recordCount() -> Int {
            // Between the renaming and the making of a new folder there is none.
            (try? FileManager.default.contentsOfDirectory(atPath: scratch.appending("cache/records").path))?.count ?? 0
        }
        cache.storeCachedResponse(Responses.cached(Responses.url("/a")), for: request)
        cache.flush()
        isBroken.withLock { $0 = true }
        cache.removeAllCachedResponses()
        cache.flush()
        #expect(cache.cachedResponse(for: request) == nil)
        #expect(recordCount() == 1)
        // Not once only.
        let first = tries.withLock { $0 }
        await eventually("a second try") { tries.withLock { $0 } > first + 1 }
        isBroken.withLock { $0 = false }
        await eventually("the removal of the record") { recordCount() == 0 }
    }
}
