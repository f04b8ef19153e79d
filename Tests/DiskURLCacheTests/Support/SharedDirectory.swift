import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// A directory for several caches in this process, each with a store of its own, as several processes have them. What
/// they do and find goes through the public class.
struct SharedDirectory: Sendable {
    let scratch: ScratchDirectory
    let clock = ManualClock(Date())
    var url: URL { scratch.appending("c") }
    /// The file in which caches tell each other what they change.
    var changes: String { url.path + "/changes" }
    var records: [String] { get throws { try FileManager.default.contentsOfDirectory(atPath: url.path + "/records") } }

    init(_ label: String = #function) throws { scratch = try ScratchDirectory(label) }

    enum Start {
        /// The first cache owns the directory, each later one is a guest.
        case flushed
        /// Its queue gets to work at some moment.
        case justOpened
        /// Its queue has not got to work yet, and does not until `wake`.
        case resting
    }

    func open(
        _ files: any FileSystem = SystemFiles(), _ start: Start = .flushed,
        _ change: (inout DiskURLCache.Configuration) -> Void = { _ in }
    ) -> DiskURLCache {
        let maintenance = MaintenanceQueue()
        if start == .resting { maintenance.pause() }
        var configuration = DiskURLCache.Configuration(memoryCapacity: 8 << 20, diskCapacity: 64 << 20, directory: url)
        configuration.fileSystem = files
        configuration.clock = clock.wallClock
        change(&configuration)
        configuration.store = configuration.makeStore(directory: url, maintenance: maintenance)
        let cache = DiskURLCache(configuration: configuration)
        if start == .flushed { cache.flush() }
        return cache
    }

    /// What is removed: something of an account, and everything that its removal must not spare.
    enum Removal: String, CaseIterable, Sendable {
        case key, resource, tag, host, prefix, since, all

        static let told: [Removal] = [.key, .resource, .tag, .all]
    }
}

extension DiskURLCache {
    private static func request(_ path: String, tags: Set<String>) -> URLRequest {
        var request = Responses.request(path)
        request.cacheOptions = Options(tags: tags)
        return request
    }

    /// Stores a response of an account.
    func put(
        _ body: String, _ path: String = "/a", tags: Set<String> = ["account"], inMemoryOnly: Bool = false
    ) {
        let fields = ["Cache-Control": "max-age=3600", "ETag": "\"1\""]
        let response = Responses.cached(
            Responses.url(path), body, fields: fields, policy: inMemoryOnly ? .allowedInMemoryOnly : .allowed)
        storeCachedResponse(response, for: Self.request(path, tags: tags))
    }

    func found(_ path: String = "/a") -> String? {
        cachedResponse(for: Responses.request(path)).map { String(decoding: $0.data, as: UTF8.self) }
    }

    /// Looks for changes by other caches, as one lookup does in each second.
    func look() { store.disk?.checkNow() }

    /// What a lookup finds that comes a second later. By then each cache has looked for changes by others.
    func foundLater(_ path: String = "/a") -> String? {
        look()
        return found(path)
    }

    func forgetMemory() { removeAllCachedResponses(from: .memory) }

    /// Removes the response at a path in one of the ways to do that.
    func remove(_ what: SharedDirectory.Removal, _ path: String = "/a") {
        switch what {
        case .key: removeCachedResponse(for: Responses.request(path))
        // As after an unsafe request.
        case .resource: invalidate(Responses.url(path))
        case .tag: removeCachedResponses(tag: "account")
        case .host: removeCachedResponses(host: "example.com")
        case .prefix: removeCachedResponses(urlPrefix: "https://example.com" + path)
        case .since: removeCachedResponses(since: .distantPast)
        case .all: removeAllCachedResponses()
        }
    }

    /// Its queue does nothing until `wake`, as that of a process which gets no time.
    func rest() { store.maintenance.pause() }
    func wake() { store.maintenance.resume() }

    /// Gives the stored response a new head: the server confirms it.
    func freshen(_ path: String = "/a") async throws {
        var request = Self.request(path, tags: ["account"])
        request.cachePolicy = .reloadRevalidatingCacheData
        let network = MemoryTransport { _, exchange in
            exchange.head(304, ["ETag": "\"1\"", "Cache-Control": "max-age=3600"])
            exchange.end()
        }
        _ = try await LoadReader(request, from: self, over: network).answer()
    }

    func pin(_ path: String = "/a") { setPinned(true, for: Responses.request(path)) }

    var ownsDirectory: Bool { store.diskStore?.isOwner == true }

    /// Saves the index and gives the directory up.
    func close() { store.close() }

    /// Gives the directory up as a process does that is killed.
    func die() { store.diskStore?.move(.close) }
}

/// A load that has asked the network, and whose answer the test holds back.
struct HeldLoad {
    private let exchange: MemoryTransport.Exchange
    private let answer: Task<Data, any Error>

    init(_ path: String = "/a", from cache: DiskURLCache) async {
        var request = Responses.request(path)
        request.cachePolicy = .reloadIgnoringLocalCacheData
        request.cacheOptions = .init(tags: ["account"])
        let exchanges = Exchanges()
        let reader = LoadReader(request, from: cache, over: exchanges.network())
        answer = Task { try await reader.answer().data }
        exchange = await exchanges.next(1)
    }

    /// Returns when the answer was stored, or refused.
    func end(_ body: String, status: Int = 200) async throws {
        exchange.head(status, ["Cache-Control": "max-age=3600"])
        exchange.piece(body)
        exchange.end()
        _ = try await answer.value
    }
}
