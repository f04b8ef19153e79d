import Foundation
import Testing

@testable import DiskURLCache

/// What a cache pays that shares a directory with its owner: files that it opens, and rows that it writes.
@Suite struct GuestCostTests {
    /// A guest has no index, so it looks into each slot of the key, and nowhere else.
    @Test func aMissOpensEightRecords() throws {
        let directory = try SharedDirectory()
        let owner = directory.open()
        owner.put("other", "/other")
        let files = FaultyFileSystem()
        let guest = directory.open(files)
        _ = files.takeCalls()
        #expect(guest.found("/a?b=1") == nil)
        #expect(files.takeCalls().filter { $0.operation == .open && $0.isRecord }.count == RecordName.slots)
        withExtendedLifetime(owner) {}
    }

    /// One before, for who is writing, and one after, for who has read meanwhile.
    @Test func aRemovalOfAKeyWritesTwoRows() throws {
        let directory = try SharedDirectory()
        let owner = directory.open()
        owner.put("body")
        let files = FaultyFileSystem()
        let guest = directory.open(files)
        _ = files.takeCalls()
        guest.removeCachedResponse(for: Responses.request("/a"))
        #expect(files.takeCalls().filter { $0.operation == .write && $0.name == "changes" }.count == 2)
        #expect(owner.foundLater() == nil)
    }
}
