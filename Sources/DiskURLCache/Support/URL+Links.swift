import Foundation

extension URL {
    /// The file URL without symbolic links, as the system follows them. Foundation resolves none in a path that does
    /// not exist, as that of a directory which is still to be made, so what exists of it is resolved, name by name.
    var withoutLinks: URL {
        absoluteURL.pathComponents.dropFirst().reduce(URL(fileURLWithPath: "/", isDirectory: true)) { folder, name in
            if name == "." { return folder }
            if name == ".." { return folder.path == "/" ? folder : folder.deletingLastPathComponent() }
            return folder.appendingPathComponent(name).resolvingSymlinksInPath()
        }
    }
}
