import Foundation

/// A directory for one test, gone with everything in it when the value goes.
final class ScratchDirectory: Sendable {
    let url: URL

    /// One folder for the whole run, removed at its end: a cache that outlives its test, held by a session that is
    /// being torn down say, makes its directory again.
    private static let root = Root()

    private struct Root: Sendable {
        let owner = getpid()
        let url = URL(fileURLWithPath: NSTemporaryDirectory(), isDirectory: true)
            .appendingPathComponent("DiskURLCacheTests-\(UUID().uuidString)", isDirectory: true)

        init() {
            atexit {
                // A child made by fork must not clear the folder of its parent.
                guard getpid() == ScratchDirectory.root.owner else { return }
                try? FileManager.default.removeItem(at: ScratchDirectory.root.url)
            }
        }
    }

    /// Makes a folder take 200 KB and more by files that are gone again: a folder does not shrink.
    static func grow(_ folder: String) throws {
        let names = (0..<1_000).map { folder + "/" + String(repeating: "x", count: 200) + "\($0)" }
        for name in names { try Data().write(to: URL(fileURLWithPath: name)) }
        for name in names { try FileManager.default.removeItem(atPath: name) }
    }

    init(_ label: String = #function) throws {
        let name = label.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }.prefix(40)
        url = Self.root.url.appendingPathComponent("\(name)-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    /// Out of the way at once, and removed at the end of the run: ext4 does not give the numbers of removed files to
    /// new ones for a minute, and looks at each of them whenever a file is made. The long form needs the room.
    deinit {
        let gone = Self.root.url.appendingPathComponent("gone-\(UUID().uuidString)", isDirectory: true)
        if TestLength.isLong || rename(url.path, gone.path) != 0 { try? FileManager.default.removeItem(at: url) }
    }

    /// A place inside; nothing is made there.
    func appending(_ name: String) -> URL {
        url.appendingPathComponent(name)
    }

    /// Paths of all regular files inside, relative and sorted.
    func files() -> [String] {
        let all = FileManager.default.enumerator(atPath: url.path)?.compactMap { $0 as? String } ?? []
        return all.filter { path in
            var isDirectory: ObjCBool = false
            return FileManager.default.fileExists(atPath: appending(path).path, isDirectory: &isDirectory)
                && !isDirectory.boolValue
        }.sorted()
    }
}
