import Foundation

/// Gives a cache's folder what only Apple platforms have: no backup, and a protection class, which new files take from the
/// folder that they are made in. On the maintenance queue.
///
/// The operations are closures, so that what is done with them is tested everywhere.
struct FolderPreparation: Sendable {
    /// The class of a file or folder; gives nil where that cannot be told. Nil on macOS, which has no classes.
    var protection: (@Sendable (_ path: String) -> FileProtectionType?)?
    /// False where the class stays as it was, such as that of a file which cannot be opened while the device is locked.
    var setProtection: @Sendable (_ path: String, FileProtectionType) -> Bool
    /// Names in a folder.
    var names: @Sendable (_ path: String) -> [String]
    var excludeFromBackup: @Sendable (_ path: String) -> Void

    /// - Parameters:
    ///   - folders: the directory, then folders in it that hold files.
    func callAsFunction(_ folders: [String], protection wanted: FileProtectionType) {
        guard let directory = folders.first else { return }
        excludeFromBackup(directory)
        guard let protection, folders.contains(where: { protection($0)?.rawValue != wanted.rawValue }) else { return }
        // The directory comes last, once all that is in it has the class: so what was interrupted is done at the next launch.
        var isDone = true
        for folder in folders.reversed() {
            // A folder comes before its files, so that what is made meanwhile has the class already.
            if folder != directory { isDone = setProtection(folder, wanted) && isDone }
            for path in names(folder).map({ folder + "/" + $0 }) where !folders.contains(path) {
                isDone = setProtection(path, wanted) && isDone
            }
        }
        if isDone { _ = setProtection(directory, wanted) }
    }

    /// Nil where files have no protection classes and there are no backups to be kept out of.
    static var current: FolderPreparation? {
        #if canImport(Darwin)
            var preparation = FolderPreparation(
                protection: { path in
                    let value = try? FileManager.default.attributesOfItem(atPath: path)[.protectionKey]
                    return value as? FileProtectionType
                },
                setProtection: { path, wanted in
                    let set: ()? = try? FileManager.default.setAttributes(
                        [.protectionKey: wanted], ofItemAtPath: path)
                    // One that is gone by now needs no class.
                    return set != nil || !FileManager.default.fileExists(atPath: path)
                },
                names: { (try? FileManager.default.contentsOfDirectory(atPath: $0)) ?? [] },
                excludeFromBackup: { path in
                    var values = URLResourceValues()
                    values.isExcludedFromBackup = true
                    var url = URL(fileURLWithPath: path, isDirectory: true)
                    try? url.setResourceValues(values)
                })
            #if os(macOS)
                preparation.protection = nil
            #endif
            return preparation
        #else
            return nil
        #endif
    }
}
