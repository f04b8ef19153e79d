import Foundation
import Testing

@testable import DiskURLCache

/// What a cache is to its directory: each step from each state. A verdict is not lost by what another thread was about
/// to say.
@Suite struct DiskStateTests {
    private let scratch: ScratchDirectory
    private let lock: OwnerLock
    private let folder = FileIdentity(device: 1, inode: 2)
    private let next = FileIdentity(device: 1, inode: 3)

    init() throws {
        scratch = try ScratchDirectory("state")
        let paths = DiskPaths(directory: scratch.url.path)
        let directory = try SystemFiles().status(at: paths.directoryBytes).identity
        lock = try #require(OwnerLock.acquire(SystemFiles(), paths, directory: directory))
    }

    private func name(_ state: DiskState) -> String {
        switch state {
        case .closed: "closed"
        case .unusable(let isReadable): isReadable ? "unusable, readable" : "unusable"
        case .guest: "guest"
        case .owner(_, let known, let isAlone):
            [
                "owner", known.map { $0 == folder ? "folder known" : "next folder known" }, isAlone ? "alone" : nil,
            ]
            .compactMap(\.self).joined(separator: ", ")
        }
    }

    @Test func eachStepFromEachState() {
        let states: [DiskState] = [
            .closed, .unusable(isReadable: false), .guest, .owner(lock, folder: nil, isAlone: false),
            .owner(lock, folder: folder, isAlone: true),
        ]
        let steps: [(DiskState.Step, [String])] = [
            (.close, ["closed", "closed", "closed", "closed", "closed"]),
            (.refuse(isReadable: true), ["closed"] + Array(repeating: "unusable, readable", count: 4)),
            (.refuse(isReadable: false), ["closed"] + Array(repeating: "unusable", count: 4)),
            (.accept, ["closed", "guest", "guest", "owner", "owner, folder known, alone"]),
            (.leave, ["closed", "guest", "guest", "guest", "guest"]),
            // The new owner has not looked for other caches yet.
            (.own(lock), ["closed", "unusable", "owner", "owner", "owner, folder known, alone"]),
            // Only an owner is alone: one that has lost the directory while it looked is not.
            (.findNobody, ["closed", "unusable", "guest", "owner, alone", "owner, folder known, alone"]),
            (.expectOthers, ["closed", "unusable", "guest", "owner", "owner, folder known"]),
            // Who lists the folder has looked at the state before: a refusal, or a leaving, that came meanwhile stays.
            (
                .list(lock, folder),
                ["closed", "unusable", "guest", "owner, folder known", "owner, folder known, alone"]
            ),
            // A distrust that came before is not lost: the folder is listed again.
            (.replaceFolder(next), ["closed", "unusable", "guest", "owner", "owner, next folder known, alone"]),
            (.distrust, ["closed", "unusable", "guest", "owner", "owner, alone"]),
        ]
        for (step, expected) in steps {
            #expect(states.map { name($0.after(step)) } == expected, "\(step)")
        }
    }

    /// The listing of an owner that has lost its lock, and got another one, meanwhile.
    @Test func aListingUnderAnotherLockCountsNothing() throws {
        let other = try ScratchDirectory("state")
        let paths = DiskPaths(directory: other.url.path)
        let directory = try SystemFiles().status(at: paths.directoryBytes).identity
        let newLock = try #require(OwnerLock.acquire(SystemFiles(), paths, directory: directory))
        #expect(name(DiskState.owner(newLock, folder: nil, isAlone: false).after(.list(lock, folder))) == "owner")
    }
}
