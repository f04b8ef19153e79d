import Foundation

/// Sets what Apple platforms know about a folder: that it is not backed up, and its protection class, which new files
/// inherit from the folder. Runs on the maintenance queue.
///
/// The operations are closures, so that tests on every platform can run this.
struct FolderPreparation: Sendable {
    /// Returns the class of a file or folder, nil if it is unknown. The closure itself is nil on macOS, which has no
    /// protection classes.
    var protection: (@Sendable (_ path: String) -> FileProtectionType?)? = { path in
        (try? FileManager.default.attributesOfItem(atPath: path)[.protectionKey]) as? FileProtectionType
    }
    /// Returns false if the class could not be changed, for example since the file cannot be opened while the device is
    /// locked.
    var setProtection: @Sendable (_ path: String, FileProtectionType) -> Bool = { path, wanted in
        let set: ()? = try? FileManager.default.setAttributes([.protectionKey: wanted], ofItemAtPath: path)
        // A file that was removed meanwhile needs no class.
        return set != nil || !FileManager.default.fileExists(atPath: path)
    }
    /// The names in a folder.
    var names: @Sendable (_ path: String) -> [String] = { path in
        (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
    }
    var excludeFromBackup: @Sendable (_ path: String) -> Void = { path in
        var values = URLResourceValues()
        values.isExcludedFromBackup = true
        var url = URL(fileURLWithPath: path, isDirectory: true)
        try? url.setResourceValues(values)
    }

    /// Nil on Linux, which has no protection classes, and no backups that would respect the mark.
    static var current: FolderPreparation? {
        switch Platform.current {
        case .linux: nil
        case .macOS: FolderPreparation(protection: nil)
        default: FolderPreparation()
        }
    }

    /// - Parameters:
    ///   - folders: the directory, then folders in it that hold files.
    func callAsFunction(_ folders: [String], protection wanted: FileProtectionType) {
        guard let directory = folders.first else { return }
        excludeFromBackup(directory)
        guard let protection else { return }
        let isWanted = folders.allSatisfy { protection($0)?.rawValue == wanted.rawValue }
        if isWanted { return }
        // A simulator names no class, whatever is set: then the files need none either.
        if let folder = folders.last, setProtection(folder, wanted), protection(folder) == nil { return }
        // The directory gets its class last, after all files in it: if the change is interrupted, the next launch sees
        // the old class of the directory and completes the change.
        var isDone = true
        for folder in folders.reversed() {
            // A folder gets its class before its files, so that files that are made meanwhile have it already.
            if folder != directory { isDone = setProtection(folder, wanted) && isDone }
            for path in names(folder).map({ folder + "/" + $0 }) where !folders.contains(path) {
                isDone = setProtection(path, wanted) && isDone
            }
        }
        if isDone { _ = setProtection(directory, wanted) }
    }
}
