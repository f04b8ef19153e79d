import Foundation
import Testing

@testable import DiskURLCache
@testable import DiskURLCacheTools

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Digests of credentials in a directory confirm no guess by a table made in advance, and those of two directories
/// cannot be compared.
@Suite(.fewAtATime) struct CredentialSaltTests {
    private static let fields = ["Authorization": "Basic YWxpY2U6aHVudGVyMg==", "Cookie": "pin=1234"]
    private let scratch: ScratchDirectory
    private let request: URLRequest

    init() throws {
        scratch = try ScratchDirectory()
        var request = Responses.request("/me")
        for (name, value) in Self.fields { request.setValue(value, forHTTPHeaderField: name) }
        self.request = request
    }

    private func open(_ name: String) -> DiskURLCache {
        var configuration = DiskURLCache.Configuration(
            memoryCapacity: 0, diskCapacity: 10 << 20, directory: scratch.appending(name))
        configuration.platform = .linux
        return DiskURLCache(configuration: configuration)
    }

    private func store(in cache: DiskURLCache) {
        let fields = ["Cache-Control": "max-age=3600", "Vary": "Cookie, Authorization"]
        cache.storeCachedResponse(Responses.cached(request.url!, "page", fields: fields), for: request)
        cache.flush()
    }

    private func records(_ name: String) throws -> [String: Data] {
        let folder = scratch.appending(name).appendingPathComponent("records")
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        return Dictionary(
            uniqueKeysWithValues: try names.map { ($0, try Data(contentsOf: folder.appendingPathComponent($0))) })
    }

    @Test func noDigestOfCredentialsIsThatOfAnotherDirectory() throws {
        for name in ["a", "b"] { store(in: open(name)) }
        let (first, second) = (try #require(try records("a").first), try #require(try records("b").first))
        // The name's first half is the URL's, the second half the key's.
        #expect(first.key.prefix(16) == second.key.prefix(16))
        #expect(first.key.dropFirst(16).prefix(16) != second.key.dropFirst(16).prefix(16))
        func bytes(_ digest: KeyDigest) -> Data {
            var writer = ByteWriter(capacity: 32)
            writer.append(digest)
            return Data(writer.finish())
        }
        let key = try #require(DiskURLCache.KeyPolicy.standard.key(for: request))
        #expect(key.text.contains(Self.fields["Authorization"]!))
        let guesses =
            [bytes(key.digest)]
            + Self.fields.map { bytes(SHA256Digest.digest(of: "\($0.lowercased()):\($1)")) }
        for record in [first, second] {
            for guess in guesses { #expect(record.value.range(of: guess) == nil) }
        }
    }

    /// Also of another process: a tool reads the salt from the directory.
    @Test func theSaltStaysWithItsDirectory() throws {
        store(in: open("a"))
        let salt = try Data(contentsOf: scratch.appending("a/salt"))
        #expect(salt.count == CredentialSalt.length)
        let attributes = try FileManager.default.attributesOfItem(atPath: scratch.appending("a/salt").path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let again = open("a")
        #expect(again.cachedResponse(for: request)?.data == Data("page".utf8))
        var other = request
        other.setValue("pin=4321", forHTTPHeaderField: "Cookie")
        #expect(again.cachedResponse(for: other) == nil)
        other = request
        other.setValue("Basic Ym9iOmh1bnRlcjI=", forHTTPHeaderField: "Authorization")
        #expect(again.cachedResponse(for: other) == nil)
        let inspector = try DiskURLCache.Inspector(directory: scratch.appending("a"))
        #expect("\(inspector.explanation(for: request))".contains("fresh"))
        again.removeCachedResponses(authorization: Self.fields["Authorization"]!)
        #expect(again.cachedResponse(for: request) == nil)
        #expect(try Data(contentsOf: scratch.appending("a/salt")) == salt)
    }

    /// A directory that was deleted and made again keeps the salt that the cache knows; a different directory has its
    /// own.
    @Test func anotherDirectoryHasAnotherSalt() throws {
        let cache = open("a")
        store(in: cache)
        let salt = try Data(contentsOf: scratch.appending("a/salt"))
        try FileManager.default.removeItem(at: scratch.appending("a"))
        store(in: cache)
        store(in: cache)
        #expect(try Data(contentsOf: scratch.appending("a/salt")) == salt)
        #expect(cache.cachedResponse(for: request)?.data == Data("page".utf8))
        store(in: open("b"))
        try FileManager.default.moveItem(at: scratch.appending("a"), to: scratch.appending("c"))
        try FileManager.default.moveItem(at: scratch.appending("b"), to: scratch.appending("a"))
        cache.flush()
        #expect(cache.cachedResponse(for: request)?.data == Data("page".utf8))
    }

    /// A 304 may come first after a directory could not be used for a while: its record is written while the salt is
    /// not read.
    @Test func aRecordIsWrittenWhileTheSaltIsNotRead() throws {
        let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 10 << 20, directory: scratch.appending("a"))
        store(in: cache)
        let store = try #require(cache.store.diskStore)
        let key = try #require(cache.key(for: request))
        let metadata = try #require(store.variants(of: key).first?.metadata)
        var next = metadata
        next.sequence += 1
        let live = VaryKey("Cookie", request: ["Cookie": "pin=1234"], salt: store.salt)
        store.salt.directoryChanged()
        store.withIO { _ in #expect(live.fields.first?.salt?.bytes.count == CredentialSalt.length) }
        #expect(store.update(next, of: key, replacing: metadata, usedAt: 1))
        cache.removeAllCachedResponses(from: .memory)
        #expect(cache.cachedResponse(for: request)?.data == Data("page".utf8))
    }

    /// A link is no file of a cache, and what it leads to is left alone.
    @Test func aLinkIsReplaced() throws {
        let directory = scratch.appending("a")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let other = scratch.appending("other")
        try Data("other".utf8).write(to: other)
        try FileManager.default.createSymbolicLink(
            at: directory.appendingPathComponent("salt"), withDestinationURL: other)
        store(in: open("a"))
        #expect(try Data(contentsOf: other) == Data("other".utf8))
        #expect(try Data(contentsOf: directory.appendingPathComponent("salt")).count == CredentialSalt.length)
        #expect(open("a").cachedResponse(for: request)?.data == Data("page".utf8))
    }

    /// Caches that begin the file at once have one salt.
    @Test func ofSeveralBeginningsTheFirstCounts() throws {
        let directory = scratch.appending("a")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let paths = DiskPaths(directory: directory.path)
        let found = Mutex<Set<[UInt8]>>([])
        DispatchQueue.concurrentPerform(iterations: 16) { number in
            let new = [UInt8](repeating: UInt8(number), count: CredentialSalt.length)
            let bytes = try? CredentialSalt.bytes(SystemFiles(), paths, adding: new)
            found.withLock { _ = $0.insert(bytes ?? []) }
        }
        #expect(found.withLock { $0.count } == 1)
        #expect(found.withLock { $0.first?.count } == CredentialSalt.length)
    }
}
