import Foundation
import Testing

@testable import DiskURLCache

/// Who owns a directory among the caches of one process.
@Suite struct OwnerLockTests {
    private let scratch: ScratchDirectory
    private let paths: DiskPaths
    private let identity: FileIdentity

    init() throws {
        scratch = try ScratchDirectory("owner-lock")
        paths = DiskPaths(directory: scratch.url.path)
        identity = try SystemFiles().status(at: paths.directoryBytes).identity
    }

    @Test func oneCacheOfAProcessOwnsTheDirectory() throws {
        let lock = try #require(OwnerLock.acquire(SystemFiles(), paths, directory: identity))
        #expect(OwnerLock.acquire(SystemFiles(), paths, directory: identity) == nil)
        lock.release()
        #expect(OwnerLock.acquire(SystemFiles(), paths, directory: identity) != nil)
    }

    enum Ending: CaseIterable {
        case release
        /// The file `lock` cannot be opened.
        case failure
    }

    /// Once the last descriptor of a deleted directory is closed, a new directory may get its inode number. Until
    /// 2026-11-27 the number was still registered at that moment, so that, now and then, nobody owned the new one.
    @Test(arguments: Ending.allCases) func whenItIsClosedADirectoryIsNotRegisteredAnyMore(ending: Ending) throws {
        let other = try ScratchDirectory("with the same number")
        let (otherPaths, identity) = (DiskPaths(directory: other.url.path), identity)
        let successes = Mutex<[Bool]>([])
        let files = FaultyFileSystem { call in
            if call.operation == .close, call.path.hasSuffix("/.") {
                let lock = OwnerLock.acquire(SystemFiles(), otherPaths, directory: identity)
                successes.withLock { $0.append(lock != nil) }
            }
            return ending == .failure && call.operation == .open && call.name == "lock" ? .error(EMFILE) : nil
        }
        let lock = OwnerLock.acquire(files, paths, directory: identity)
        #expect((lock != nil) == (ending == .release))
        lock?.release()
        #expect(successes.withLock { $0 } == [true])
    }
}
