import Foundation
import Testing

@testable import DiskURLCache

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A record that cannot be read for a moment. Nothing stands in for it. If it is removed then, it does not come back.
@Suite(.fewAtATime) struct UnreadableVariantTests {
    private let fixture: DiskFixture
    private let files = FaultyFileSystem()
    private let key = RequestKey.test("a")
    private let german = StoredEntry.test(testBody(1), sequence: 1, language: "de")
    private let english = StoredEntry.test(testBody(2), sequence: 2, language: "en")

    init() throws { fixture = try DiskFixture() }

    static let errors = [EMFILE, ENFILE, ENOMEM, EIO]

    /// The records of both languages are on disk, and another cache owns the directory.
    private func guest() -> (owner: DiskStore, guest: DiskStore) {
        let owner = fixture.open()
        owner.flush()
        owner.maintenance.pause()
        owner.store(german, for: key)
        owner.store(english, for: key)
        let guest = fixture.open(files: files)
        guest.flush()
        guest.maintenance.pause()
        return (owner, guest)
    }

    private func failing(_ error: Int32, _ work: () -> Void) {
        files.rule = { $0.operation == .open && $0.isRecord ? .error(error) : nil }
        work()
        files.rule = { _ in nil }
    }

    /// What cannot be read at this moment is a miss, and is found as soon as it can be read: neither an older response
    /// nor the other variant stands in for it. `EPERM` is that of a locked device, in the app's own container.
    @Test(arguments: [EMFILE, ENFILE, ENOMEM, EPERM], ["older", "variant"])
    func whatCannotBeReadIsAMissForThatMoment(error: Int32, what: String) throws {
        func cache(_ name: String, _ change: (inout DiskURLCache.Configuration) -> Void = { _ in }) -> DiskURLCache {
            var configuration = DiskURLCache.Configuration(
                memoryCapacity: 1 << 20, diskCapacity: 10 << 20, directory: fixture.scratch.appending(name))
            configuration.platform.locksOnlyInPasses = error == EPERM
            configuration.container = fixture.scratch.url.path
            change(&configuration)
            return DiskURLCache(configuration: configuration)
        }
        func request(_ language: String) -> URLRequest {
            Responses.request("/a", fields: ["Accept-Language": language])
        }
        func store(_ body: String, in cache: DiskURLCache, _ language: String) {
            let fields = ["Cache-Control": "max-age=60"].merging(
                what == "variant" ? ["Vary": "Accept-Language"] : [:]
            ) { $1 }
            cache.storeCachedResponse(
                Responses.cached(Responses.url("/a"), body, fields: fields), for: request(language))
        }
        let bundle = cache("bundle")
        if what == "older" { store("old", in: bundle, "de") }
        bundle.flush()
        let cache = cache("own") {
            $0.fileSystem = files
            $0.fallbackDirectories = [fixture.scratch.appending("bundle")]
        }
        store("new", in: cache, "de")
        if what == "variant" { store("english", in: cache, "en") }
        cache.flush()
        cache.removeAllCachedResponses(from: .memory)
        let isFirst = Mutex(true)
        files.rule = { call in
            guard call.operation == .open, call.isRecord else { return nil }
            // Of two variants one can be read.
            return what == "variant" && isFirst.disarm() ? nil : .error(error)
        }
        let english = cache.cachedResponse(for: request("en"))
        #expect(english == nil || what == "variant" && english?.data == Data("english".utf8))
        #expect(cache.cachedResponse(for: request("de")) == nil)
        files.rule = { _ in nil }
        #expect(cache.cachedResponse(for: request("de"))?.data == Data("new".utf8))
        if what == "variant" { #expect(cache.cachedResponse(for: request("en"))?.data == Data("english".utf8)) }
    }

    @Test(arguments: errors) func aVariantThatAGuestRemoves(error: Int32) {
        let (owner, guest) = guest()
        failing(error) { guest.remove(key, variant: german.metadata.varyKey) }
        #expect(!guest.variants(of: key).contains { $0.metadata.sequence == 1 })
        withExtendedLifetime(owner) {}
    }

    @Test(arguments: errors) func aResponseThatAGuestRemovesByItsNumber(error: Int32) {
        let (owner, guest) = guest()
        failing(error) { guest.remove(key, sequence: 1) }
        #expect(!guest.variants(of: key).contains { $0.metadata.sequence == 1 })
        withExtendedLifetime(owner) {}
    }

    /// A record that is larger than the capacity of the cache that removes it.
    @Test func aVariantThatIsTooLargeForTheGuest() {
        let owner = fixture.open()
        owner.flush()
        owner.maintenance.pause()
        owner.store(.test(testBody(1, length: 100_000), sequence: 1, language: "de"), for: key)
        owner.store(english, for: key)
        let guest = fixture.open(capacity: 64 << 10)
        guest.flush()
        guest.maintenance.pause()
        guest.remove(key, variant: german.metadata.varyKey)
        owner.lookLater()
        #expect(owner.variants(of: key).map(\.metadata.sequence) == [2])
    }

    /// The server denies a response of which memory knows nothing any more.
    @Test(arguments: errors) func aVariantThatTheServerDenies(error: Int32) {
        let maintenance = MaintenanceQueue()
        let disk = DiskStore(
            configuration: DiskConfiguration(directory: fixture.directory, capacity: 64 << 20),
            fileSystem: files, maintenance: maintenance)
        let store = TieredStore.over(disk, maintenance)
        store.flush()
        maintenance.pause()
        disk.store(german, for: key)
        disk.store(english, for: key)
        failing(error) { store.remove(key, german.metadata) }
        #expect(store.lookup(key).variants().map(\.metadata.sequence) == [2])
    }

    /// A newer answer of the same variant stays.
    @Test func aVariantThatWasReplacedMeanwhileStays() {
        let maintenance = MaintenanceQueue()
        let disk = DiskStore(
            configuration: DiskConfiguration(directory: fixture.directory, capacity: 64 << 20),
            maintenance: maintenance)
        let store = TieredStore.over(disk, maintenance)
        store.flush()
        maintenance.pause()
        disk.store(.test(testBody(3), sequence: 3, language: "de"), for: key)
        store.remove(key, german.metadata)
        #expect(store.lookup(key).variants().map(\.metadata.sequence) == [3])
    }
}
