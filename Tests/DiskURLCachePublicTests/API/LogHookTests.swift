import DiskURLCache
import Foundation
import Testing

@Suite("An app takes what the library tells developers") struct LogHookTests {
    private let scratch: ScratchDirectory
    private let lines = Guarded<[String]>([])

    init() throws { scratch = try ScratchDirectory() }

    private func settings(_ name: String) -> DiskURLCache.Configuration {
        var settings = DiskURLCache.Configuration(memoryCapacity: 1 << 20, directory: scratch.appending(name))
        settings.log = { [lines] line in lines.withLock { $0.append(line) } }
        return settings
    }

    @Test func eachProblemIsToldOnceToTheLogOfTheApp() {
        #expect(DiskURLCache.Configuration().log == nil)
        var settings = settings("a")
        settings.rules = [.init(for: .host("not a host/"), storage: .never)]
        let cache = DiskURLCache(configuration: settings)
        for _ in 0..<3 { _ = cache.cachedResponse(for: Responses.request("/")) }
        cache.flush()
        #expect(lines.withLock { $0 } == [cache.openingError?.description])
    }

    /// Neither is a setting without effect passed over in silence.
    @Test func aSecondCacheOfAFolderTellsWhichOfItsSettingsCountForNothing() throws {
        let first = DiskURLCache(configuration: settings("b"))
        var settings = settings("b")
        settings.evictionWeighsSize = true
        let second = DiskURLCache(configuration: settings)
        let error = try #require(second.openingError)
        #expect(error.description.contains("evictionWeighsSize"))
        #expect(first.openingError == nil)
    }

    @Test func aQuietCacheTellsNothing() {
        let cache = DiskURLCache(configuration: settings("c"))
        cache.storeCachedResponse(Responses.cached(Responses.url("/")), for: Responses.request("/"))
        cache.flush()
        #expect(lines.withLock { $0 } == [])
    }
}
