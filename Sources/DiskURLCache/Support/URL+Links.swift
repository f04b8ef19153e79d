import Foundation

extension URL {
    /// The file URL without symbolic links. Foundation resolves none in a path that does not exist, as that of a
    /// directory which is still to be made, so what exists of it is resolved.
    var withoutLinks: URL {
        if path == "/" || FileManager.default.fileExists(atPath: path) {
            return resolvingSymlinksInPath().standardizedFileURL
        }
        return deletingLastPathComponent().withoutLinks.appendingPathComponent(lastPathComponent)
    }
}
