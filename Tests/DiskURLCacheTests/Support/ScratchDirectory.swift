import Foundation

/// A directory for one test, removed with everything in it when the value goes.
final class ScratchDirectory: Sendable {
    let url: URL

    init(_ label: String = #function) throws {
        let name = label.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }.prefix(40)
        url = URL(fileURLWithPath: NSTemporaryDirectory(), isDirectory: true)
            .appendingPathComponent("DiskURLCacheTests-\(name)-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
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
