import Foundation
import Testing

@testable import DiskURLCache

/// Where a cache lies.
@Suite struct FolderChoiceTests {
    #if !canImport(Darwin)
        @Test func theCachesFolderIsTheOneThatTheEnvironmentNames() {
            func path(_ environment: [String: String], home: String? = "/home/by-database") -> String {
                DiskURLCache.Configuration.cachesFolder(by: environment, home: home).path
            }
            #expect(
                path(["CACHE_DIRECTORY": "/var/cache/a:/var/cache/b", "XDG_CACHE_HOME": "/x", "HOME": "/h"])
                    == "/var/cache/a")
            #expect(path(["XDG_CACHE_HOME": "/x", "HOME": "/h"]) == "/x")
            #expect(path(["XDG_CACHE_HOME": "relative", "HOME": "/h"]) == "/h/.cache")
            #expect(path(["HOME": "/h"]) == "/h/.cache")
            #expect(path([:]) == "/home/by-database/.cache")
            #expect(path(["HOME": ""]) == "/home/by-database/.cache")
            // A container whose user has no entry in the password database.
            let temporary = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent("user-\(geteuid())")
            for home in ["/", "/nonexistent"] {
                #expect(path(["HOME": home]) == "/home/by-database/.cache")
                #expect(path(["HOME": home], home: nil) == temporary.path)
                #expect(path([:], home: home) == temporary.path)
            }
            // It is looked at before it is used: any user may have made it.
            let enclosure = DiskURLCache.Configuration.enclosure
            #expect(enclosure(temporary.appendingPathComponent("DiskURLCache/p")) == temporary.path)
            #expect(enclosure(URL(fileURLWithPath: "/h/.cache/DiskURLCache/p")) == nil)
        }
    #endif

    /// Only there a process may be suspended with a lock on a file.
    @Test func aFolderInTheAppsOwnContainer() throws {
        let scratch = try ScratchDirectory()
        func isOwn(_ path: String) -> Bool {
            DiskURLCache.Configuration.isInOwnContainer(URL(fileURLWithPath: path), home: scratch.url.path)
        }
        #expect(isOwn(scratch.url.path + "/Library/Caches/c"))
        #expect(!isOwn(scratch.url.path) && !isOwn(scratch.url.path + "-group/c") && !isOwn("/private/shared/c"))
        let link = scratch.url.deletingLastPathComponent().appendingPathComponent("link-" + UUID().uuidString)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: scratch.url)
        defer { try? FileManager.default.removeItem(at: link) }
        // Also if it is still to be made.
        #expect(isOwn(link.path + "/c") && isOwn(link.path + "/c/d"))
    }

    /// The first cache makes the folder, and Foundation resolves links only in paths that exist.
    @Test func aFolderBehindALinkIsOneFolder() throws {
        let scratch = try ScratchDirectory()
        let link = scratch.appending("link")
        try FileManager.default.createDirectory(at: scratch.appending("real"), withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(at: link, withDestinationURL: scratch.appending("real"))
        func open(_ folder: URL) -> DiskURLCache {
            DiskURLCache(
                memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: folder.appendingPathComponent("a/c"))
        }
        let first = open(link)
        first.flush()
        #expect(open(link).core.store === first.core.store)
        #expect(open(scratch.appending("real")).core.store === first.core.store)
        // As the system follows them.
        try FileManager.default.createSymbolicLink(
            at: scratch.appending("deep"), withDestinationURL: scratch.appending("real/a"))
        #expect(
            URL(fileURLWithPath: scratch.url.path + "/deep/../b/c").withoutLinks.path
                == scratch.url.withoutLinks.path + "/real/b/c")
        // Also if it is written in a roundabout way.
        let roundabout = URL(fileURLWithPath: scratch.url.path + "/none/../new/./a/c")
        let second = open(roundabout.deletingLastPathComponent().deletingLastPathComponent())
        second.flush()
        #expect(open(scratch.appending("new")).core.store === second.core.store)
    }

    /// Two spellings of one name are two folders for the system, and one text for Swift.
    @Test func foldersAreComparedByBytes() throws {
        let scratch = try ScratchDirectory()
        let caches = ["caf\u{e9}", "cafe\u{301}"].map { name in
            DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: scratch.appending(name))
        }
        #expect(caches[0].core.store !== caches[1].core.store)
        let request = Responses.request("/a")
        caches[0].storeCachedResponse(Responses.cached(Responses.url("/a"), "one"), for: request)
        #expect(caches[1].cachedResponse(for: request) == nil)
    }

    @Test func tagsAreComparedByBytes() throws {
        let scratch = try ScratchDirectory()
        let cache = DiskURLCache(memoryCapacity: 1 << 20, diskCapacity: 1 << 20, directory: scratch.appending("c"))
        var request = Responses.request("/a")
        request.cacheOptions = .init(tags: ["caf\u{e9}"])
        cache.storeCachedResponse(Responses.cached(Responses.url("/a"), "one"), for: request)
        cache.removeCachedResponses(tag: "cafe\u{301}")
        #expect(cache.contains(request))
        cache.removeCachedResponses(tag: "caf\u{e9}")
        #expect(!cache.contains(request))
    }
}
