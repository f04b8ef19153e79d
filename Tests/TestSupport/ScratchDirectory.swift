import Foundation

/// A directory for one test, removed with everything in it when the value is released.
public final class ScratchDirectory: Sendable {
    public let url: URL

    /// One folder for the whole run, removed at its end. A cache that outlives its test, for example held by a session
    /// that is being invalidated, would otherwise make its directory again.
    private static let root = Root()

    private struct Root: Sendable {
        let owner = getpid()
        let url = URL(fileURLWithPath: NSTemporaryDirectory(), isDirectory: true)
            .appendingPathComponent("DiskURLCacheTests-\(UUID().uuidString)", isDirectory: true)

        init() {
            atexit {
                // A child process made by fork must not remove the folder of its parent.
                guard getpid() == ScratchDirectory.root.owner else { return }
                try? FileManager.default.removeItem(at: ScratchDirectory.root.url)
            }
        }
    }

    /// Makes a folder itself take more than 200 KB, by creating and removing files in it: a folder does not shrink.
    public static func grow(_ folder: String) throws {
        let names = (0..<1_000).map { folder + "/" + String(repeating: "x", count: 200) + "\($0)" }
        for name in names { try Data().write(to: URL(fileURLWithPath: name)) }
        for name in names { try FileManager.default.removeItem(atPath: name) }
    }

    public init(_ label: String = #function) throws {
        let name = label.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }.prefix(40)
        url = Self.root.url.appendingPathComponent("\(name)-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    /// The directory is moved out of the way at once, and removed at the end of the run: for a minute, ext4 does not
    /// reuse the inodes of removed files, and passes over each of them whenever a file is created. In the long form it
    /// is removed at once, to save space.
    deinit {
        let gone = Self.root.url.appendingPathComponent("gone-\(UUID().uuidString)", isDirectory: true)
        if TestLength.isLong || rename(url.path, gone.path) != 0 { try? FileManager.default.removeItem(at: url) }
    }

    /// A path inside; nothing is created there.
    public func appending(_ name: String) -> URL {
        url.appendingPathComponent(name)
    }

    /// The paths of all regular files inside, relative and sorted.
    public func files() -> [String] {
        let all = FileManager.default.enumerator(atPath: url.path)?.compactMap { $0 as? String } ?? []
        return all.filter { path in
            var isDirectory: ObjCBool = false
            return FileManager.default.fileExists(atPath: appending(path).path, isDirectory: &isDirectory)
                && !isDirectory.boolValue
        }.sorted()
    }
}
