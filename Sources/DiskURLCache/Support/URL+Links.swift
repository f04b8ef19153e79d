import Foundation

extension URL {
    /// The file URL without symbolic links. Foundation resolves none in a path that does not exist, as that of a
    /// directory which is still to be made, so what exists of it is resolved.
    var withoutLinks: URL {
        let url = standardizedFileURL
        if url.path == "/" || url.lastPathComponent == ".." || FileManager.default.fileExists(atPath: url.path) {
            return resolvingSymlinksInPath().standardizedFileURL
        }
        return url.deletingLastPathComponent().withoutLinks.appendingPathComponent(url.lastPathComponent)
    }
}
