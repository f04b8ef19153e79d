import Foundation

/// Gives a cache's folder the properties of Apple platforms: no backup, and a protection class, which new files take
/// from the folder that they are made in. On the maintenance queue.
///
/// The operations are closures, so that tests on every platform can run this.
struct FolderPreparation: Sendable {
    /// The class of a file or folder; gives nil if it is unknown. Nil on macOS, which has no classes.
    var protection: (@Sendable (_ path: String) -> FileProtectionType?)?
    /// False if the class was not changed, as for a file that cannot be opened while the device is locked.
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
        // The directory comes last, once all files in it have the class, so that the next launch completes an
        // interrupted change.
        var isDone = true
        for folder in folders.reversed() {
            // A folder comes before its files, so that new files have the class already.
            if folder != directory { isDone = setProtection(folder, wanted) && isDone }
            for path in names(folder).map({ folder + "/" + $0 }) where !folders.contains(path) {
                isDone = setProtection(path, wanted) && isDone
            }
        }
        if isDone { _ = setProtection(directory, wanted) }
    }

    /// Nil on platforms without protection classes and backups.
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
                    // A file that was removed meanwhile needs no class.
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
